"""Scores within and across domains: AUCs against a loop over pairs, and planted effects."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.membership import api
from contamination.membership.scores import TOP, Distribution, Signals
from reproduction.notebooks.assumptions.measure import PHASES, score_phases
from reproduction.notebooks.assumptions.tables import (
    CROSS_COLUMNS,
    MEAN,
    WITHIN_COLUMNS,
    cross_table,
    within_table,
)
from reproduction.run.domain_texts import Domain

LENGTH = 60
BEFORE, AFTER = (
    SimpleNamespace(name=name, revision=name, batch_tokens=256) for name in ("before", "after")
)
# What the first token says of a made-up text: the level of its domain. The second: who has read it.
LEVELS = {"alpha": 0, "beta": 0, "far": 3}
NOBODY, CORPUS, TUNED = range(3)
GAINS = {("before", CORPUS): 0.0, ("after", TUNED): 1.0}


def texts(rng: np.random.Generator, domain: str, reader: int, count: int) -> tuple:
    found = rng.integers(10, 100, size=(count, LENGTH)).astype(np.int32)
    found[:, 0], found[:, 1] = LEVELS[domain], reader
    return tuple(found)


def made_up_signals(scorer, sequences: Sequence[np.ndarray]) -> list[Signals]:
    """Log-probabilities that depend on the text alone: its level, and what the model has read."""
    found = []
    for ids in sequences:
        rng = np.random.default_rng(ids.astype(np.int64))
        log_probs = rng.normal(-4 - int(ids[0]), 1, len(ids))
        log_probs += rng.normal(0, 0.3) + GAINS.get((scorer.name, int(ids[1])), 0.0)
        values = log_probs.astype(np.float32)
        rank, off = (rng.integers(1, 60, len(ids)).astype(np.float32) for _ in range(2))
        top = np.ones((len(ids), len(TOP)), dtype=np.float32)
        found.append(Signals(values, Distribution(rank, off, values, np.ones_like(values), top)))
    return found


@pytest.fixture(scope="module", autouse=True)
def made_up_models() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "token_signals", made_up_signals)
        yield


@pytest.fixture(scope="module")
def domains() -> dict[str, Domain]:
    rng = np.random.default_rng(0)
    sides = ((CORPUS, 40), (NOBODY, 40), (TUNED, 25))
    found = {
        name: Domain(*(texts(rng, name, reader, count) for reader, count in sides))
        for name in ("alpha", "beta")
    }
    return found | {"far": Domain((), texts(rng, "far", NOBODY, 40), texts(rng, "far", NOBODY, 25))}


@pytest.fixture(scope="module")
def scored(domains, tmp_path_factory) -> pd.DataFrame:
    tuned = {name: domains[name].spare for name in ("alpha", "beta")}
    return score_phases(domains, tuned, BEFORE, AFTER, tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def within(scored) -> pd.DataFrame:
    return within_table(scored, model="m", rng=np.random.default_rng(1), resamples=200)


@pytest.fixture(scope="module")
def cross(scored) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return cross_table(scored, ["loss", "mem_25"], model="m", rng=rng, resamples=200)


def auc(members, others) -> float:
    pairs = [(a > b) + (a == b) / 2 for a in members for b in others]
    return 100 * sum(pairs) / len(pairs)


def loss(scorer, some) -> list[float]:
    found = made_up_signals(scorer, some)
    return [float(np.mean(one.log_probs[1:], dtype=np.float64)) for one in found]


def cell(table: pd.DataFrame, **where: str) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


def test_every_phase_has_its_texts(scored, domains) -> None:
    sizes = scored.groupby(["phase", "domain", "member"]).size().to_dict()
    expected = {
        (phase, name, member): size
        for phase, members in zip(PHASES, (25, 40, 25), strict=True)
        for name in ("alpha", "beta")
        for member, size in ((True, members), (False, 40))
    }
    assert sizes == expected | {(phase, "far", False): 40 for phase in PHASES[1:]}
    beta = scored[scored["domain"] == "beta"].set_index("phase")
    for phase, scorer in (("control", BEFORE), ("fine-tuning", AFTER)):
        chosen = beta.loc[phase]
        for member, some in ((True, domains["beta"].spare), (False, domains["beta"].non_members)):
            assert list(chosen.loc[chosen["member"] == member, "loss"]) == loss(scorer, some)
        assert not chosen.isna().any(axis=None)


def test_within_is_the_auc_of_all_pairs(within, domains) -> None:
    assert tuple(within) == WITHIN_COLUMNS
    assert set(within["status"]) == {"ok"}
    sides = ((BEFORE, "spare"), (BEFORE, "members"), (AFTER, "spare"))
    for phase, (scorer, side) in zip(PHASES, sides, strict=True):
        found = []
        for name in ("alpha", "beta"):
            members, others = getattr(domains[name], side), domains[name].non_members
            expected = auc(loss(scorer, members), loss(scorer, others))
            row = cell(within, phase=phase, domain=name, metric="loss")
            assert row["auc_percent"] == pytest.approx(expected)
            assert row["auc_low"] < expected < row["auc_high"]
            assert (row["members"], row["non_members"]) == (len(members), 40)
            found.append(row)
        mean = cell(within, phase=phase, domain=MEAN, metric="loss")
        centre = np.mean([r["auc_percent"] for r in found])
        half = np.hypot(*((r["auc_high"] - r["auc_low"]) / 2 for r in found)) / 2
        ends = (mean["auc_low"], mean["auc_percent"], mean["auc_high"])
        assert ends == pytest.approx((centre - half, centre, centre + half))
    assert "far" not in set(within["domain"])  # it has no member


def test_a_planted_memory_is_found_where_it_is_and_only_there(within) -> None:
    means = {phase: cell(within, phase=phase, domain=MEAN, metric="loss") for phase in PHASES}
    assert means["fine-tuning"]["auc_low"] > 90
    for phase in ("control", "pre-training"):
        assert means[phase]["auc_low"] < 50 < means[phase]["auc_high"]


def test_across_domains_the_level_decides_whatever_was_read(cross, domains) -> None:
    assert tuple(cross) == CROSS_COLUMNS
    row = cell(cross, phase="pre-training", seen_domain="alpha", unseen_domain="far", metric="loss")
    assert row["auc_percent"] > 99
    unseen = loss(BEFORE, domains["alpha"].non_members), loss(BEFORE, domains["far"].non_members)
    assert row["shift_auc_percent"] == pytest.approx(auc(*unseen))
    assert (row["members"], row["non_members"]) == (40, 40)
    row = cell(cross, phase="fine-tuning", seen_domain="beta", unseen_domain="alpha", metric="loss")
    sides = loss(AFTER, domains["beta"].spare), loss(AFTER, domains["alpha"].non_members)
    assert row["auc_percent"] == pytest.approx(auc(*sides))
    alike = loss(AFTER, domains["beta"].non_members), sides[1]
    assert row["shift_auc_percent"] == pytest.approx(auc(*alike))


def test_the_diagonal_is_within_and_has_no_shift(cross, within) -> None:
    pairs = cross.groupby(["phase", "metric"]).size()
    assert pairs.to_dict() == {(p, m): 2 * 3 for p in PHASES[1:] for m in ("loss", "mem_25")}
    for name in ("alpha", "beta"):
        where = {"phase": "pre-training", "metric": "mem_25"}
        row = cell(cross, seen_domain=name, unseen_domain=name, **where)
        assert row["auc_percent"] == cell(within, domain=name, **where)["auc_percent"]
        assert np.isnan(row["shift_auc_percent"])
