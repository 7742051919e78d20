"""The time that a job of scoring will take here, from samples of its own batches.

A sample is what the job reads one after the other, so it has the shapes of the run:
shared prefixes, lengths, padding. How far the samples differ, and how far runs have
differed from their forecasts (docs/measurements/forecasts.csv), gives the range.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from contamination.errors import InputError
from contamination.scoring import agreement
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import processes
from contamination.scoring.store_format import Place
from contamination.scoring.work import cut_into_parts

SMALLEST_SAMPLE = 256  # tokens
SAMPLE_SECONDS = 0.3  # that one sample takes at most, once it is larger than the smallest
MOST_SECONDS = 0.9  # that samples take; none begins afterwards
SHARE = 0.03  # of the run that samples may take; none but the first begins afterwards
# Where samples begin, in the order of work: the middle is the best if there is but one.
BEGINNINGS = (1 / 2, 1 / 6, 5 / 6, 1 / 3, 2 / 3)
# By which the run may be faster than the fastest sample, and slower than the slowest.
FASTER = 0.7
SLOWER = 1.5


@dataclass(frozen=True)
class Forecast:
    """Seconds that scoring will take: expected, and from how few to how many."""

    seconds: float
    least: float
    most: float

    def __add__(self, other: "Forecast") -> "Forecast":
        """Return the forecast of two jobs, one after the other."""
        return Forecast(
            seconds=self.seconds + other.seconds,
            least=self.least + other.least,
            most=self.most + other.most,
        )

    def scaled(self, factor: float) -> "Forecast":
        """Return the forecast of `factor` times the work."""
        return Forecast(
            seconds=self.seconds * factor,
            least=self.least * factor,
            most=self.most * factor,
        )


NOTHING = Forecast(seconds=0.0, least=0.0, most=0.0)


def with_range(seconds: float, fastest: float, slowest: float) -> Forecast:
    """Return the forecast of a run, by seconds that work has taken.

    The run takes the `fastest` seconds if all its work is as fast as the fastest
    measured work, and the `slowest` if it is as slow as the slowest.
    """
    return Forecast(seconds=seconds, least=fastest * FASTER, most=slowest * SLOWER)


class SampleReader(Protocol):
    """Reads pieces of some work for the clock; see `readers.Reader`."""

    def read_sample(self, places: Sequence[Place], tokens: int) -> int:
        """Read the first pieces, about `tokens` tokens, and return the number of tokens read."""

    def tokens_of(self, place: Place) -> int:
        """Return the tokens that a model here reads for a piece."""


@dataclass(frozen=True)
class TimedWork:
    """Work of which samples are read for the clock."""

    reader: SampleReader
    places: Sequence[Place]  # of the pieces
    tokens: Sequence[int]  # of each piece, by which the work is cut into parts
    alone: bool  # whether one process does all the work


@dataclass(frozen=True)
class Sample:
    """Tokens that were to be read for the clock, those that were, and the seconds it took."""

    size: int
    tokens: int
    seconds: float

    @property
    def pace(self) -> float:
        """Seconds a token."""
        return self.seconds / self.tokens


def forecast(job: TimedWork, scorer: TransformersScorer, share: float) -> Forecast:
    """Return how long a share of a job, from 0 to 1, will take, from samples of its work.

    The model runs here. Nothing is stored, and nothing that the job does later changes.
    """
    tokens = share * sum(map(job.reader.tokens_of, job.places)) / processes_of(job)
    scorer.load()
    with agreement.taken_for_granted(scorer):
        samples = take_samples(job, scorer, tokens)
    paces = [sample.pace for sample in samples]
    return with_range(
        seconds=tokens * median(paces),
        fastest=tokens * min(paces),
        slowest=tokens * max(paces),
    )


def processes_of(job: TimedWork) -> int:
    """Return the number of processes that share the work."""
    return 1 if job.alone else processes().num_processes


def take_samples(job: TimedWork, scorer: TransformersScorer, tokens: float) -> list[Sample]:
    """Read samples of the work after a first one that warms up; at least one is returned.

    `tokens` is the number that the model is to read in the whole job.
    """
    order = reading_order(job, scorer)
    warm_up(job, scorer, order)
    first = first_sample(job, scorer, order)
    samples = [first]
    spent = first.seconds
    allowed = min(MOST_SECONDS, SHARE * first.pace * tokens)
    for beginning in BEGINNINGS[1:]:
        if spent >= allowed:
            break
        sample = take_sample(job, order, beginning, first.size)
        samples.append(sample)
        spent += sample.seconds
    return samples


def first_sample(job: TimedWork, scorer: TransformersScorer, order: list[Place]) -> Sample:
    """Return a sample that takes long enough, or is a batch, from the middle of the work."""
    size = SMALLEST_SAMPLE
    while True:
        sample = take_sample(job, order, BEGINNINGS[0], size)
        wanted = min(scorer.batch_tokens, int(SAMPLE_SECONDS / sample.pace))
        is_all = sample.tokens < size / 2  # there is no more work
        if wanted < 2 * size or is_all:
            return sample
        size = wanted


def take_sample(job: TimedWork, order: list[Place], beginning: float, size: int) -> Sample:
    """Read about `size` tokens of the work, after a share of it (`beginning`, from 0 to 1)."""
    places = order[int(beginning * len(order)) :]
    started = time.perf_counter()
    tokens = job.reader.read_sample(places, size)
    return Sample(size, tokens, time.perf_counter() - started)


def warm_up(job: TimedWork, scorer: TransformersScorer, order: list[Place]) -> None:
    """Read a small sample, and share no prefixes if the network cannot."""
    try:
        take_sample(job, order, BEGINNINGS[0], SMALLEST_SAMPLE)
    except InputError:
        raise
    except Exception:
        # Of any class: architectures refuse what they do not know in many ways.
        agreement.remember(scorer, None)
        take_sample(job, order, BEGINNINGS[0], SMALLEST_SAMPLE)


def reading_order(job: TimedWork, scorer: TransformersScorer) -> list[Place]:
    """Return the places as the model reads them: part after part, the longest first."""
    order: list[Place] = []
    for part in cut_into_parts(job.tokens, scorer.batch_tokens):
        places = [job.places[index] for index in part]
        order += sorted(places, key=job.reader.tokens_of, reverse=True)
    return order
