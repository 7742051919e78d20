"""Scores within and across domains: AUCs against a loop over pairs, and planted effects."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.assumptions.measure import PHASES, score_phases
from reproduction.notebooks.assumptions.tables import MEAN, cross_table, within_table
from reproduction.run.grid import Access
from reproduction.run.texts import Domain

LENGTH = 60
BEFORE, AFTER = "before", "after"  # models
# What the first token says of a made-up text: the level of its domain. The second: who has read it.
LEVELS = {"alpha": 0, "beta": 0, "far": 3}
NOBODY, CORPUS, TUNED = range(3)
GAINS = {("before", CORPUS): 0.0, ("after", TUNED): 1.0}


def texts(rng: np.random.Generator, domain: str, reader: int, count: int) -> tuple:
    found = rng.integers(10, 100, size=(count, LENGTH)).astype(np.int32)
    found[:, 0], found[:, 1] = LEVELS[domain], reader
    return tuple(found)


def loss(model: str, some: Sequence[np.ndarray]) -> list[float]:
    """A score that depends on the text alone: its level, and what the model has read."""
    draws = (np.random.default_rng(ids.astype(np.int64)).normal(0, 0.4) for ids in some)
    gains = (GAINS.get((model, int(ids[1])), 0.0) - int(ids[0]) for ids in some)
    return [draw + gain for draw, gain in zip(draws, gains, strict=True)]


class Scores(Access):
    def score_texts(self, folder, scorer: str, sequences, columns) -> pd.DataFrame:
        return pd.DataFrame({"loss": loss(scorer, sequences)}).assign(mem_25=loss("", sequences))


@pytest.fixture(scope="module")
def domains() -> dict[str, Domain]:
    rng = np.random.default_rng(0)
    sides = ((CORPUS, 40), (NOBODY, 40), (TUNED, 25))
    made = {}
    for name in ("alpha", "beta"):
        made[name] = Domain(*(texts(rng, name, reader, count) for reader, count in sides))
    return made | {"far": Domain((), texts(rng, "far", NOBODY, 40), texts(rng, "far", NOBODY, 25))}


@pytest.fixture(scope="module")
def scored(domains) -> pd.DataFrame:
    tuned = {name: domains[name].spare for name in ("alpha", "beta")}
    return score_phases(domains, tuned, BEFORE, AFTER, Path("parts"), Scores())


@pytest.fixture(scope="module")
def within(scored) -> pd.DataFrame:
    return within_table(scored, rng=np.random.default_rng(1), resamples=200)


@pytest.fixture(scope="module")
def cross(scored) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return cross_table(scored, ["loss", "mem_25"], rng=rng, resamples=200)


def auc(members, others) -> float:
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(members, others)]
    return 100 * sum(pairs) / len(pairs)


def cell(table: pd.DataFrame, **where: str) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


def test_every_phase_has_its_texts(scored, domains) -> None:
    sides = {"control": (BEFORE, 25), "pre-training": (BEFORE, 40), "fine-tuning": (AFTER, 25)}
    assert list(sides) == list(PHASES)
    for (phase, name, member), rows in scored.groupby(["phase", "domain", "member"]):
        scorer, members = sides[phase]
        domain = domains[name]
        read = domain.members if phase == "pre-training" else domain.spare
        assert rows["loss"].tolist() == loss(scorer, read if member else domain.non_members)
        assert len(rows) == (members if member else 40)
    assert len(scored.groupby(["phase", "domain", "member"])) == 3 * 2 * 2 + 2  # no "far" control


def test_within_is_the_auc_of_all_pairs_and_finds_a_planted_memory_alone(within, domains) -> None:
    sides = ((BEFORE, "spare"), (BEFORE, "members"), (AFTER, "spare"))
    for phase, (scorer, side) in zip(PHASES, sides, strict=True):
        found = []
        for name in ("alpha", "beta"):
            members = getattr(domains[name], side)
            others = domains[name].non_members
            expected = auc(loss(scorer, members), loss(scorer, others))
            row = cell(within, phase=phase, domain=name, metric="loss")
            assert row["auc_percent"] == pytest.approx(expected)
            assert row["auc_low"] < expected < row["auc_high"]
            found.append(row)
        mean = cell(within, phase=phase, domain=MEAN, metric="loss")
        centre = np.mean([r["auc_percent"] for r in found])
        half = np.hypot(*((r["auc_high"] - r["auc_low"]) / 2 for r in found)) / 2
        ends = (mean["auc_low"], mean["auc_percent"], mean["auc_high"])
        assert ends == pytest.approx((centre - half, centre, min(100, centre + half)))
        if phase == "fine-tuning":
            assert mean["auc_low"] > 90
        else:
            assert mean["auc_low"] < 50 < mean["auc_high"]
    assert "far" not in set(within["domain"])  # it has no member


def test_across_domains_the_level_decides_whatever_was_read(cross, domains) -> None:
    for phase, scorer, first, second, read in (
        ("pre-training", BEFORE, "alpha", "far", "members"),
        ("fine-tuning", AFTER, "beta", "alpha", "spare"),
    ):
        row = cell(cross, phase=phase, seen_domain=first, unseen_domain=second, metric="loss")
        others = loss(scorer, domains[second].non_members)
        members = loss(scorer, getattr(domains[first], read))
        assert row["auc_percent"] == pytest.approx(auc(members, others))
        alike = loss(scorer, domains[first].non_members)
        assert row["shift_auc_percent"] == pytest.approx(auc(alike, others))
        assert second != "far" or row["auc_percent"] > 99


def test_the_diagonal_is_within_and_has_no_shift(cross, within) -> None:
    pairs = cross.groupby(["phase", "metric"]).size()
    cells = itertools.product(PHASES[1:], ("loss", "mem_25"))
    assert pairs.to_dict() == dict.fromkeys(cells, 2 * 3)
    chosen = cross[(cross["phase"] == "pre-training") & (cross["metric"] == "mem_25")]
    diagonal = cell(chosen, seen_domain="beta", unseen_domain="beta")
    inside = cell(within, domain="beta", phase="pre-training", metric="mem_25")
    assert diagonal["auc_percent"] == inside["auc_percent"]
    assert np.isnan(diagonal["shift_auc_percent"])
