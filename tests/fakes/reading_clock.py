"""A clock that advances with the tokens that a network reads, and with nothing else."""

import pytest

from contamination.scoring import local, prefix, speed
from contamination.scoring.local import TransformersScorer


def reading_clock(patch: pytest.MonkeyPatch, *, plain: float, shared: float) -> list[float]:
    """Put a clock in the place of that of forecasts and jobs; it is the only element of a list.

    Parameters
    ----------
    patch
        Undoes it.
    plain, shared
        Seconds of a token that is read alone, and of one that shares its prefix with others.
    """
    seconds = [0.0]
    run_plain = TransformersScorer._forward
    run_shared = prefix._run

    def read_plain(scorer, batch, sequences, output):
        seconds[0] += plain * sum(window.width for window in batch)
        return run_plain(scorer, batch, sequences, output)

    def read_shared(scorer, pieces):
        seconds[0] += shared * sum(piece.width for piece in pieces)
        return run_shared(scorer, pieces)

    patch.setattr(local.TransformersScorer, "_forward", read_plain)
    patch.setattr(prefix, "_run", read_shared)
    patch.setattr(speed.time, "perf_counter", lambda: seconds[0])
    return seconds
