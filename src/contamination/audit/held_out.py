"""A p-value and a verdict where order says nothing: published records against held-out ones.

`compare` scores the records of both sides by membership scores that are declared
beforehand, tests them by `statistics.held_out`, asks baselines without a model and a
control model the same question, and decides. What the p-value rests on is one sentence
(`ASSUMPTION`): a fact where a key has drawn the sides (`contamination.seal`), and a
statement of the author elsewhere.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contamination.audit.comparison import Comparison
from contamination.audit.controls.sides import SidesControl, compare_sides
from contamination.audit.sides_store import (
    SidesHeader,
    SidesStore,
    SidesTest,
    checksum_of,
    judge_sides,
    strata_to_keep,
    usable_scores,
    write_header,
)
from contamination.errors import InputError
from contamination.membership.scores import COMPARED_SCORES, score_of_sides
from contamination.membership.stored import stored_scores, texts_to_score
from contamination.scoring.contract import Scorer
from contamination.scoring.processes import processes
from contamination.statistics import adjust
from contamination.statistics.conformal import conformal_p_values, read_at_least
from contamination.statistics.held_out import DEFAULT_STATISTIC
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SCORES = COMPARED_SCORES
# of the bound on how many records were read, or the first that is asked
BOUND_SCORE = "min_k_20"
RESAMPLES = 99_999
LEAST_TOKENS = 2  # of a record: the first token has no score of its own


@dataclass(frozen=True)
class SidesRequest:
    """The request of a comparison of two sides.

    Attributes
    ----------
    scores
        Membership scores, declared before anything is seen.
    within
        Field of the records within whose values the sides were drawn; None if there is
        no such field.
    paired
        Whether record i of one side and record i of the other are twins, of which one
        was drawn.
    statistic
        A name from `contamination.statistics.held_out.STATISTICS`.
    resamples
        Number of drawn divisions; no p is below 1 / (resamples + 1).
    seed
        Seed of the drawn divisions.
    directory
        Folder of all stores.
    name
        Name of the model; None takes that of the scorer.
    drawn
        Whether a key has drawn the sides, so that nothing can object to them.
    """

    scores: tuple[str, ...] = DEFAULT_SCORES
    within: str | None = None
    paired: bool = False
    statistic: str = DEFAULT_STATISTIC
    resamples: int = RESAMPLES
    seed: int = 0
    directory: Path = Path("contamination-stores")
    name: str | None = None
    drawn: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        if not self.scores:
            raise InputError("there is no score to compare the sides by: name one")
        for name in self.scores:
            score_of_sides(name)
        if len(set(self.scores)) < len(self.scores):
            repeated = max(self.scores, key=self.scores.count)
            raise InputError(
                f"the score {repeated!r} is named twice: name it once", parameter="scores"
            )
        if self.paired and self.within is not None:
            raise InputError(
                "pairs are strata already: give either pairs or a field", parameter="within"
            )


@dataclass(frozen=True, eq=False)
class BlindBaselines:
    """The baselines of two sides, computed where they are first needed.

    They depend on the records and the request alone, and not on the name of the model
    in it, so all models of an audit share them.
    """

    suspect: ExampleSet
    held_out: ExampleSet
    request: SidesRequest

    @cached_property
    def control(self) -> SidesControl:
        """The p-values of the baselines."""
        texts = [*self.suspect.examples, *self.held_out.examples]
        published = np.arange(len(texts)) < len(self.suspect.examples)
        strata = strata_of(self.suspect, self.held_out, self.request)
        return compare_sides(texts, published, strata, seed=self.request.seed)


def compare(
    model: Scorer,
    suspect: ExampleSet,
    held_out: ExampleSet,
    request: SidesRequest = SidesRequest(),
    *,
    level: float = 0.05,
    baselines: BlindBaselines | None = None,
    is_control: bool = False,
) -> Comparison:
    """Test whether a model scores published records higher than those that were held back.

    Parameters
    ----------
    model
        The scorer.
    suspect
        The published records.
    held_out
        The records that a random draw held back, rendered by the same template.
    request
        Scores, strata and draws.
    level
        Level of the bound on how many records were read, and of their list.
    baselines
        Those of these very sides and request, which the comparisons of several models
        share; None computes them.
    is_control
        Whether the model is a control. Then no baselines are computed: they do not
        depend on the model, and stand beside that of the audited one.

    Raises
    ------
    InputError
        For sets with different templates, a record that is on both sides or has one
        token, pairs of sets of unlike length, a record without the field of the strata,
        a field of which no value is on both sides, no score that all records have, and
        a log-probability that is not finite.
    """
    _check_sides(suspect, held_out)
    lengths = [*_lengths(suspect, model), *_lengths(held_out, model)]
    strata = strata_of(suspect, held_out, request)
    texts = [*suspect.examples, *held_out.examples]
    header = header_of(model, suspect, held_out, request)
    test = SidesTest(
        statistic=request.statistic,
        resamples=request.resamples,
        seed=request.seed,
        within=request.within or "",
        paired=request.paired,
        strata=strata_to_keep(strata.tolist()),
    )
    directory = header.directory(request.directory)
    missing = texts_to_score(directory, model, texts, columns=request.scores)
    tokens = times_read(request.scores) * sum(lengths[number] for number in missing)
    started = time.perf_counter()
    table = stored_scores(directory, model, texts, columns=request.scores)
    seconds = time.perf_counter() - started
    result = judge_sides(table, header, test)
    store = SidesStore(directory, header, test, checksum_of(table, header))
    if processes().is_main_process:
        write_header(directory, header)
        store.write_note()

    published = np.arange(len(texts)) < len(suspect.examples)
    blind = None
    if not request.drawn and not is_control:
        baselines = baselines or BlindBaselines(suspect, held_out, request)
        blind = baselines.control
    bound = None
    read = None
    if test.strata is None:
        single = table[_score_of_records(result.names)].to_numpy()
        bound = read_at_least(single, published, level=level)
        read = _read_records(single, published, level)
    precision = str(getattr(model, "dtype", "unknown"))
    return Comparison(
        store=store,
        result=result,
        aucs=_aucs(table[usable_scores(table, header)], published),
        level=level,
        read_records=read,
        read_bound=bound,
        drawn=request.drawn,
        precision=precision.removeprefix("torch."),
        blind=blind,
        tokens_scored=tokens,
        seconds=seconds,
        nats_per_character=_nats_per_character(table, texts, lengths),
    )


def times_read(scores: Sequence[str]) -> int:
    """Return how often a text is read: once more in small letters, if a score asks for them."""
    lower = any(score_of_sides(name).needs == "lower" for name in scores)
    return 2 if lower else 1  # in small letters a text has about as many tokens


def header_of(
    model: Scorer, suspect: ExampleSet, held_out: ExampleSet, request: SidesRequest
) -> SidesHeader:
    """Return the header of the store of a comparison, by the arguments of `compare`."""
    return SidesHeader(
        model=request.name or str(getattr(model, "name", "model")),
        model_revision=model.revision,
        dataset=suspect.name,
        dataset_revision=suspect.revision,
        held_out=held_out.name,
        held_out_revision=held_out.revision,
        template=suspect.template,
        scores=request.scores,
        published=len(suspect.examples),
        records=len(suspect.examples) + len(held_out.examples),
    )


def with_control(
    comparison: Comparison,
    model: Scorer,
    suspect: ExampleSet,
    held_out: ExampleSet,
    request: SidesRequest,
    name: str,
) -> Comparison:
    """Return a comparison with that of a control, a model that cannot have read either side.

    `model` and `name` are those of the control; both sides and the request are those of
    the comparison under the audited model. Raises InputError for a record of one token
    under this model, no score that all records have, and a log-probability that is not
    finite.
    """
    named = replace(request, name=name)
    control = compare(model, suspect, held_out, named, level=comparison.level, is_control=True)
    return replace(comparison, control=control)


def strata_of(suspect: ExampleSet, held_out: ExampleSet, request: SidesRequest) -> NDArray[np.intp]:
    """Return the stratum of each record, published ones first, as whole numbers from 0.

    Raises InputError for pairs of unlike number, a record without the field of the
    strata, or a field of which no value is on both sides.
    """
    if request.paired:
        if len(suspect.examples) != len(held_out.examples):
            raise InputError(
                f"{suspect.name} has {len(suspect.examples):,} records and "
                f"{held_out.name} {len(held_out.examples):,}: pairs need as many on "
                "both sides",
                parameter="paired",
            )
        pairs = np.arange(len(suspect.examples))
        return np.concatenate([pairs, pairs])
    if request.within is None:
        return np.zeros(len(suspect.examples) + len(held_out.examples), dtype=np.intp)
    published_values = _field_values(suspect, request.within)
    other_values = _field_values(held_out, request.within)
    if set(published_values).isdisjoint(other_values):
        raise InputError(
            f"no value of {request.within!a} is in both {suspect.name} and "
            f"{held_out.name}: name a field within whose values the sides were drawn",
            parameter="within",
        )
    return np.unique(published_values + other_values, return_inverse=True)[1]


def _field_values(side: ExampleSet, field: str) -> list[str]:
    """Return the value of a field in each record, as text."""
    values = []
    for number, record in enumerate(side.records, start=1):
        if field not in record:
            raise InputError(
                f"{side.name}, record {number} has no field {field!a}", parameter="within"
            )
        values.append(str(record[field]))
    return values


def _check_sides(suspect: ExampleSet, held_out: ExampleSet) -> None:
    """Raise InputError for sides that are rendered otherwise, or share a record."""
    if suspect.template != held_out.template:
        raise InputError(
            f"{suspect.name} is rendered by {suspect.template[:40]!a} and "
            f"{held_out.name} by {held_out.template[:40]!a}: give one template for "
            "both",
            parameter="template",
        )
    places = {text: number for number, text in enumerate(suspect.examples, start=1)}
    for number, text in enumerate(held_out.examples, start=1):
        if text in places:
            raise InputError(
                f"record {number} of {held_out.name}, held back, is record "
                f"{places[text]} of {suspect.name}, published: a record is on one side "
                "alone; remove it from both files"
            )


def _lengths(side: ExampleSet, model: Scorer) -> list[int]:
    """Return the tokens of each record; raise InputError for one too short for a score."""
    lengths = [len(ids) for ids in tokenize(model.tokenizer, side.examples)]
    for number, length in enumerate(lengths, start=1):
        if length < LEAST_TOKENS:
            raise InputError(
                f"record {number} of {side.name} has {length} token(s), and a score "
                f"needs {LEAST_TOKENS}: remove it"
            )
    return lengths


def _nats_per_character(
    table: "pd.DataFrame", texts: Sequence[str], lengths: Sequence[int]
) -> float | None:
    """Return the mean nats per character of texts; None if their loss is not known.

    The loss in the table is a mean over all tokens of a text but the first; `lengths`
    counts all.
    """
    if "loss" not in table or table["loss"].isna().any():
        return None
    scored = np.array(lengths) - 1
    characters = sum(map(len, texts))
    return float(-(table["loss"].to_numpy() * scored).sum() / characters)


def _score_of_records(names: Sequence[str]) -> str:
    """Return the score by which single records are judged."""
    return BOUND_SCORE if BOUND_SCORE in names else names[0]


def _read_records(
    scores: NDArray[np.float64], published: NDArray[np.bool_], level: float
) -> tuple[int, ...]:
    """Return the published records that were read, at a false discovery rate."""
    p_values = conformal_p_values(scores, published)
    corrected = adjust(np.log10(p_values), method="benjamini_hochberg").p
    return tuple(np.flatnonzero(np.asarray(corrected) <= level).tolist())


def _aucs(table: "pd.DataFrame", published: NDArray[np.bool_]) -> dict[str, float]:
    """Return the AUC of each score."""
    from contamination.membership.evaluate import auc

    areas = {}
    for name in table.columns:
        areas[name] = float(auc(table[name].to_numpy(), published))
    return areas
