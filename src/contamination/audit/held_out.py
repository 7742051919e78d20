"""A p-value and a verdict where order says nothing: published records against held-out ones.

`compare` scores the records of both sides by membership scores that are declared
beforehand, tests them by `statistics.held_out`, asks baselines without a model and a
control model the same question, and decides. What the p-value rests on is one sentence
(`ASSUMPTION`): a fact where a key has drawn the sides (`contamination.seal`), and a
statement of the author elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contamination.audit.controls.sides import SidesControl, compare_sides
from contamination.audit.decision import CONTROL_LEVEL, Evidence, Verdict, decide
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.membership.api import stored_scores
from contamination.membership.scores import COMPARED_SCORES, score_named
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.statistics import adjust
from contamination.statistics.conformal import conformal_p_values, read_at_least
from contamination.statistics.held_out import (
    DEFAULT_STATISTIC,
    HeldOutResult,
    held_out_test,
)
from contamination.testsets.example_set import ExampleSet

ASSUMPTION = (
    "which records were published and which were held back was drawn at random, and the "
    "model depends on the draw only by having read them"
)
DEFAULT_SCORES = COMPARED_SCORES
# of the bound on how many records were read, or the first that is asked
BOUND_SCORE = "min_k_20"
RESAMPLES = 99_999


@dataclass(frozen=True)
class SidesRequest:
    """How two sides are compared.

    Attributes
    ----------
    scores
        Membership scores, declared before anything is seen.
    within
        Field of the records within whose values the sides were drawn; None: there is
        none.
    paired
        Whether record i of one side and record i of the other are twins, of which one
        was drawn.
    statistic
        Of `contamination.statistics.held_out.STATISTICS`.
    resamples
        Drawn divisions; no p is below 1 / (resamples + 1).
    seed
        Of the divisions.
    directory
        Where scores of records are kept.
    name
        Of the model; None takes that of the scorer.
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
            score_named(name)
        if self.paired and self.within is not None:
            raise InputError(
                "pairs are strata already: give either pairs or a field", parameter="within"
            )


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of comparing two sides under one model.

    Attributes
    ----------
    model, model_revision
        Of the scorer.
    suspect, held_out
        Names of the two sets, and `revisions` their revisions.
    template
        Of both.
    result
        p of all scores together; `aucs` says how well each score separates the sides.
    read_records
        Numbers, from 0, of published records that were read, at a false discovery rate
        of `level`; `read_bound` bounds from below how many were. None within strata,
        where records do not compare.
    level
        Of bound and list.
    blind
        Baselines without a model; None where a key has drawn the sides.
    control
        Of a model that cannot have read either side.
    """

    model: str
    model_revision: str
    suspect: str
    held_out: str
    revisions: tuple[str, str]
    template: str
    result: HeldOutResult
    aucs: dict[str, float]
    level: float
    read_records: tuple[int, ...] | None
    read_bound: int | None
    blind: SidesControl | None
    control: "Comparison | None" = None

    def evidence(self, p: float | None = None, corrected_for: int = 1) -> Evidence:
        """Return the p-value with its controls, as the decision takes it.

        Parameters
        ----------
        p
            After correction; by default that of the result.
        corrected_for
            Number of tests over which it was corrected.
        """
        differs = ""
        if self.blind is not None and self.blind.p <= CONTROL_LEVEL:
            differs = (
                f"the sides differ without a model ({self.blind.best}, p = {self.blind.p:.3g})"
            )
        controls = {}
        if self.control is not None:
            controls[f"the control {self.control.model}"] = self.control.result.p
        return Evidence(
            test=self.result.test,
            p=self.result.p if p is None else p,
            floor=min(1.0, corrected_for * 10**self.result.log10_least),
            controls=controls,
            corrected_for=corrected_for,
            drawn=self.blind is None,
            of_sides=True,
            differs=differs,
        )

    def verdict(self, alpha: float = 0.05) -> Verdict:
        """Return the verdict at a level."""
        return decide([self.evidence()], alpha=alpha)

    def as_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return the comparison as JSON has it, with the verdict at a level."""
        verdict = self.verdict(alpha)
        described: dict[str, Any] = {
            "schema": "contamination-comparison/1",
            "model": self.model,
            "model_revision": self.model_revision,
            "suspect": self.suspect,
            "suspect_revision": self.revisions[0],
            "held_out": self.held_out,
            "held_out_revision": self.revisions[1],
            "template": self.template,
            "assumption": ASSUMPTION,
            "p": self.result.p,
            "log10_p": self.result.log10_p,
            "statistic": self.result.statistic,
            "best": self.result.best,
            "published": self.result.published,
            "held_out_records": self.result.held_out,
            "strata": self.result.strata,
            "resamples": self.result.resamples,
            "scores": self._scores(),
            "read_at_least": self.read_bound,
            "read_records": None if self.read_records is None else list(self.read_records),
            "blind": None if self.blind is None else {"p": self.blind.p, **self.blind.p_values},
            "verdict": {
                "alpha": alpha,
                "conclusion": verdict.conclusion,
                "reason": verdict.reason,
                "p": verdict.p,
                "status": verdict.status,
            },
        }
        if self.control is not None:
            described["control_model"] = self.control.as_dict(alpha)
        return described

    def _scores(self) -> list[dict[str, Any]]:
        rows = []
        for name, p in zip(self.result.names, self.result.marginal_p, strict=True):
            rows.append({"score": name, "auc": self.aucs[name], "p": p})
        return rows


def compare(
    model: Scorer,
    suspect: ExampleSet,
    held_out: ExampleSet,
    request: SidesRequest = SidesRequest(),
    *,
    level: float = 0.05,
) -> Comparison:
    """Test whether a model scores published records higher than those that were held back.

    Parameters
    ----------
    model
        The scorer.
    suspect
        The published records.
    held_out
        Those that a random draw held back, rendered by the same template.
    request
        Scores, strata and draws.
    level
        Of the bound on how many records were read, and of their list.

    Raises
    ------
    InputError
        For sets with different templates, a record that is on both sides, pairs of sets
        of unlike length, a record without the field of the strata, and as scoring and
        testing do.
    """
    _check_sides(suspect, held_out)
    strata = strata_of(suspect, held_out, request)
    texts = [*suspect.examples, *held_out.examples]
    published = np.arange(len(texts)) < len(suspect.examples)
    name = request.name or str(getattr(model, "name", "model"))
    key = sha256_of(suspect.revision, held_out.revision, *request.scores)
    table = stored_scores(
        request.directory / "held-out" / f"{model.revision[:16]}-{key[:16]}",
        model,
        texts,
        columns=request.scores,
    )
    names = [column for column in table.columns if table[column].notna().all()]
    if not names:
        raise InputError(f"{suspect.name}: the model gives none of {', '.join(request.scores)}")
    scores = table[names].to_numpy().T
    result = held_out_test(
        scores,
        published,
        strata=strata,
        names=names,
        statistic=request.statistic,
        resamples=request.resamples,
        rng=random_stream(request.seed, "held-out", suspect.revision, held_out.revision),
    )
    blind = None
    if not request.drawn:
        blind = compare_sides(texts, published, strata, seed=request.seed)
    bound = None
    read = None
    if len(np.unique(strata)) == 1:
        single = scores[names.index(BOUND_SCORE) if BOUND_SCORE in names else 0]
        bound = read_at_least(single, published, level=level)
        p_values = conformal_p_values(single, published)
        corrected = adjust(np.log10(p_values), method="benjamini_hochberg").p
        read = tuple(np.flatnonzero(np.asarray(corrected) <= level).tolist())
    return Comparison(
        model=name,
        model_revision=model.revision,
        suspect=suspect.name,
        held_out=held_out.name,
        revisions=(suspect.revision, held_out.revision),
        template=suspect.template,
        result=result,
        aucs=_aucs(scores, names, published),
        level=level,
        read_records=read,
        read_bound=bound,
        blind=blind,
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

    Parameters
    ----------
    comparison
        Under the model that is asked about.
    model, name
        The scorer of the control, and what it is called.
    suspect, held_out, request
        Those of the comparison.

    Raises
    ------
    InputError
        As `compare`.
    """
    # baselines do not depend on the model
    named = replace(request, name=name, drawn=True)
    control = compare(model, suspect, held_out, named, level=comparison.level)
    return replace(comparison, control=control)


def strata_of(suspect: ExampleSet, held_out: ExampleSet, request: SidesRequest) -> NDArray[np.intp]:
    """Return the stratum of each record, published ones first, as whole numbers from 0.

    Parameters
    ----------
    suspect
        The published records.
    held_out
        Those that a random draw held back.
    request
        Says which strata there are.

    Raises
    ------
    InputError
        For pairs of unlike number, or a record without the field of the strata.
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
    values = []
    for side in (suspect, held_out):
        values += _field_values(side, request.within)
    return np.unique(values, return_inverse=True)[1]


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
                f"record {number} of {held_out.name} is record {places[text]} of "
                f"{suspect.name}: a record was either published or held back; remove it "
                "from both"
            )


def _aucs(
    scores: NDArray[np.float64], names: Sequence[str], published: NDArray[np.bool_]
) -> dict[str, float]:
    """Return the AUC of each score."""
    from contamination.membership.evaluate import auc

    areas = {}
    for name, values in zip(names, scores, strict=True):
        areas[name] = float(auc(values, published))
    return areas
