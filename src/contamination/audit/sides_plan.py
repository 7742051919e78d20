"""The cost of a comparison of two sides, predicted: tokens, FLOPs and time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from contamination.audit.held_out import SidesRequest, header_of, times_read
from contamination.membership.api import membership_scores
from contamination.membership.stored import texts_to_score
from contamination.scoring.contract import Scorer
from contamination.scoring.cost import Workload, sequence_workload
from contamination.scoring.loading import network_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.pace import Pace, earlier_pace, keep_pace
from contamination.scoring.speed import TimedWork, forecast
from contamination.scoring.store_format import Place
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

KIND = "sides"  # of work, in addition to the kinds of stores


@dataclass(frozen=True)
class SidesPlan:
    """The scoring that a comparison needs.

    Attributes
    ----------
    published, held_out
        Numbers of records of either side.
    work
        Tokens and forward passes of both sides, those that are stored included.
    missing
        Tokens of the records whose scores are not stored yet.
    flops, seconds, least_seconds, most_seconds
        Predicted FLOPs and seconds of the missing work, with the range of the seconds;
        None if nothing is missing, or if the model runs elsewhere.
    measured
        Date of the earlier run that the seconds follow from; None if they were measured
        for this plan.
    """

    published: int
    held_out: int
    work: Workload
    missing: int
    flops: float | None = None
    seconds: float | None = None
    least_seconds: float | None = None
    most_seconds: float | None = None
    measured: str | None = None


def plan_comparison(
    model: Scorer, suspect: ExampleSet, held_out: ExampleSet, request: SidesRequest
) -> SidesPlan:
    """Return what `contamination.audit.held_out.compare` has to score, by its arguments.

    The time follows from an earlier run of the model on this machine, if there is one,
    else from samples.
    """
    texts = [*suspect.examples, *held_out.examples]
    ids = tokenize(model.tokenizer, texts)
    directory = header_of(model, suspect, held_out, request).directory(request.directory)
    numbers = texts_to_score(directory, model, texts, columns=request.scores)
    missing = [ids[number] for number in numbers]
    work = _work_of(missing, model, request.scores)
    plan = SidesPlan(
        published=len(suspect.examples),
        held_out=len(held_out.examples),
        work=_work_of(ids, model, request.scores),
        missing=work.scored,
    )
    if not missing or not isinstance(model, TransformersScorer):
        return plan
    pace = earlier_pace(model, KIND, work)
    if pace is None:
        measured = None
        pace = _sampled_pace(model, work, missing, request.scores)
    else:
        measured = pace.date
        pace = pace.of(pace.shape.flops(work))
    return replace(
        plan,
        flops=pace.flops,
        seconds=pace.time.seconds,
        least_seconds=pace.time.least,
        most_seconds=pace.time.most,
        measured=measured,
    )


def _work_of(ids: Sequence[np.ndarray], model: Scorer, scores: Sequence[str]) -> Workload:
    """Count what scoring texts takes."""
    lengths = [len(tokens) for tokens in ids]
    return sequence_workload(lengths, times_read(scores), model.context)


def _sampled_pace(
    model: TransformersScorer,
    work: Workload,
    ids: Sequence[np.ndarray],
    scores: Sequence[str],
) -> Pace:
    """Return the pace of scoring texts, from samples of them, and keep it."""
    texts = TimedWork(
        reader=TextReader(model, ids, scores),
        places=[(0, number) for number in range(len(ids))],
        tokens=[len(tokens) for tokens in ids],
        alone=model.spread,
    )
    time = forecast(texts, model, share=1.0)
    shape = network_shape(model.model)
    pace = Pace(shape=shape, flops=shape.flops(work), time=time)
    keep_pace(pace, model, KIND, work)
    return pace


class TextReader:
    """Texts of which samples are read for the clock; see `contamination.scoring.speed.TimedWork`.

    `ids` are the tokens of each text; membership scores are computed from those that
    are read.
    """

    def __init__(
        self, model: TransformersScorer, ids: Sequence[np.ndarray], scores: Sequence[str]
    ) -> None:
        self.model = model
        self.ids = ids
        self.scores = scores

    def read_sample(self, places: Sequence[Place], tokens: int) -> int:
        """Score the first texts, about `tokens` tokens, and return the number of tokens read."""
        sample: list[np.ndarray] = []
        left = tokens
        for place in places:
            ids = self.ids[place[1]][:tokens]
            if sample and len(ids) > left:
                break
            sample.append(ids)
            left -= len(ids)
        membership_scores(self.model, sample, columns=self.scores)
        return tokens - left

    def tokens_of(self, place: Place) -> int:
        """Return the tokens of a text."""
        return len(self.ids[place[1]])
