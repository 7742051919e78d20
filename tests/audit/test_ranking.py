"""Statistics ranked on the shipped stores, and statistics of one's own."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.audit.ranking import (
    CLEAN,
    CONTAMINATED,
    OK,
    _ranking,
    _store_of,
    own_statistic,
    score_statistics,
)
from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.scoring.store import create_store, open_store
from fakes.data_fixtures import ROOT
from fakes.made_up_store import HEADER
from fakes.shipped_sets import link_shipped_sets

PAGE = ROOT / "docs" / "how-to" / "own-statistic.md"
SETS = ("signature-64", "question-2")
SUMMED = """
def sums(store, shard, permutations):
    return store.log_probs(permutations)[shard]
"""
CHEATING = """
def cheat(store, shard, permutations):
    values = store.log_probs(permutations)[shard].copy()
    values[0] += 10
    return values
"""
NO_SCORES = {
    "number": "1.0",
    "one_score": "[1.0]",
    "matrix": "[[1.0, 2.0]]",
    "no_number": "[1.0, float('nan')]",
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    """Return a folder with two of the shipped sets."""
    return link_shipped_sets(tmp_path_factory.mktemp("stores"), SETS)


@pytest.fixture(scope="module")
def ranked(stores, tmp_path_factory) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ranking and results of all registered statistics, of sums, and of `NO_SCORES`."""
    path = tmp_path_factory.mktemp("own") / "mine.py"
    code = SUMMED
    for name, value in NO_SCORES.items():
        code += f"def {name}(store, shard, permutations):\n    return {value}\n"
    path.write_text(code, encoding="utf-8")
    own = [own_statistic(f"{path}:{name}") for name in ("sums", *NO_SCORES)]
    return score_statistics(stores, own)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of Python and returns its path."""

    def written(code: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(code, encoding="utf-8")
        return path

    return written


def test_every_registered_statistic_of_order_is_ranked(ranked):
    ranking, results = ranked
    computed = {"sums"} | {name for name in TESTS if name != "options"}
    assert set(ranking["test"]) == computed
    assert len(results) == len(computed | {*NO_SCORES}) * 2 * len(SETS)


def test_numbers_are_those_of_the_registry_and_their_mean(stores, ranked):
    ranking, results = ranked
    expected = []
    for name in SETS:
        store = open_store(stores / "contaminated" / name / "orderings-025")
        expected.append(TESTS["sharded_exact"].result(store, store.permutations()).log10_p)
    own = results[(results["test"] == "sharded_exact") & (results["model"] == "contaminated")]
    assert own["log10_p"].tolist() == expected
    row = ranking.set_index("test").loc["sharded_exact"]
    assert row["mean_log10_p"] == np.mean(expected)
    assert row["rejected"] == sum(value <= np.log10(0.05) for value in expected)


def test_a_set_without_tokens_has_no_p_and_says_why(ranked):
    _, results = ranked
    lost = results[(results["status"] != "ok") & ~results["test"].isin(NO_SCORES)]
    assert lost["p"].isna().all()
    needing_tokens = set()
    for test in TESTS.values():
        if test.tokens_per_example is None and not test.needs_sums_only:
            needing_tokens.add(test.name)
    assert set(lost["test"]) == needing_tokens - {"options"}
    assert all(status.startswith("not computed: ") for status in lost["status"])


def test_the_sum_as_a_statistic_of_ones_own_is_the_exact_test(ranked):
    ranking, _ = ranked
    means = ranking.set_index("test")["mean_log10_p"]
    assert means["sums"] == means["sharded_exact"]


def test_the_statistic_of_the_page_runs(tmp_path, write, call):
    """By command on a set of few copies, and by itself on one of many, which it finds."""
    stores = link_shipped_sets(tmp_path / "stores", ["question-2"])
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = write(code)
    status, out, _ = call("leaderboard", stores, "--own", f"{path}:clipped", "--json")
    assert status == 0
    rows = {row["test"]: row for row in json.loads(out)["ranking"]}
    assert rows["clipped"]["sets"] == 1
    many = link_shipped_sets(tmp_path / "many", ["signature-64"])
    store = open_store(many / "contaminated" / "signature-64" / "orderings-025")
    clipped = own_statistic(f"{path}:clipped")
    assert clipped.result(store, store.permutations()).log10_p < -1


def test_a_statistic_that_raises_the_published_ordering_comes_last(tmp_path, write, call):
    stores = link_shipped_sets(tmp_path / "stores", ["question-2"])
    path = write(CHEATING)
    out = call("leaderboard", stores, "--own", f"{path}:cheat", "--alpha", "1e-4")[1]
    rows = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    assert rows.index("cheat") == len(rows) - 1
    assert re.findall(r"^(\w+): it rejects too many sets", out, re.MULTILINE) == ["cheat"]


@pytest.mark.parametrize(
    ("code", "function", "named"),
    [
        (SUMMED, "nothing", "'nothing'"),
        ("import nothing_of_that_name", "sums", "nothing_of_that_name"),
        ("sums = 1", "sums", "'sums'"),
    ],
)
def test_a_statistic_that_cannot_be_loaded_is_named(write, code, function, named):
    with pytest.raises(InputError, match=named):
        own_statistic(f"{write(code)}:{function}")


@pytest.mark.parametrize("name", ["missing.py:sums", "sums", ""])
def test_a_file_that_is_missing_is_named(name):
    with pytest.raises(InputError, match=re.escape(repr(name))):
        own_statistic(name)


FAILING = f"""
{SUMMED}
def bad(store, shard, permutations): raise ValueError('of one line\\nand another')
def takes_nothing(): return [1.0]
"""


def test_a_statistic_that_fails_is_told_with_its_reason(write, call, tmp_path):
    """The others are ranked, the command fails, and its file is no place for the table."""
    stores = link_shipped_sets(tmp_path / "stores", ["question-2"])
    path = write(FAILING)
    own = []
    for name in ("sums", "bad", "takes_nothing"):
        own += ["--own", f"{path}:{name}"]
    table = tmp_path / "results.csv"
    status, out, err = call("leaderboard", stores, *own, "--csv", table)
    assert status == 2
    assert err == ""
    assert "successor" in out
    assert table.is_file()
    told = " ".join(out.split())
    for name, error in (("bad", "Value"), ("takes_nothing", "Type")):
        assert f" {name}: not computed: " in told
        assert f": shard 0: {error}Error(" in told
    status, _, err = call("leaderboard", stores, *own, "--csv", path)
    assert status == 2
    assert "what is read" in err
    assert path.read_text(encoding="utf-8") == FAILING


@pytest.mark.parametrize("name", NO_SCORES)
def test_scores_that_are_none_are_no_result(ranked, name):
    _, results = ranked
    statuses = results.loc[results["test"] == name, "status"]
    assert len(statuses) == 2 * len(SETS)
    assert all(name in status and "shard 0" in status for status in statuses)


def made_up(*rows: tuple[str, str, float, str]) -> pd.DataFrame:
    """Return results by test, model, p and status."""
    results = pd.DataFrame(rows, columns=["test", "model", "p", "status"])
    return results.assign(dataset="any", dup_count=0, log10_p=np.log10(results["p"]))


def test_the_level_of_a_statistic_is_judged_by_the_clean_sets_that_it_has():
    """Two rejections among three sets are too many, among forty they are few."""
    rows = [("few", CLEAN, p, OK) for p in (0.001, 0.001, 0.9)]
    rows += [("many", CLEAN, p, OK) for p in (0.001, 0.001, *[0.9] * 38)]
    for name in ("few", "many"):
        rows += [(name, CONTAMINATED, 0.001, OK)] * 40
    rows += [("half", CONTAMINATED, 0.001, OK), ("half", CLEAN, np.nan, "not computed")]
    ranking = _ranking(made_up(*rows), 0.01).set_index("test")
    assert ranking["keeps_level"].to_dict() == {"many": True, "few": False}
    assert ranking["clean_sets"].to_dict() == {"many": 40, "few": 3}


@pytest.mark.parametrize("model", [CLEAN, CONTAMINATED])
def test_a_folder_without_stores_of_a_model_is_refused(model):
    other = CLEAN if model == CONTAMINATED else CONTAMINATED
    rows = [("any", other, 0.5, OK), ("any", model, np.nan, "not computed: no store")]
    with pytest.raises(InputError, match=f"{model}.*no store"):
        _ranking(made_up(*rows), 0.05)


def test_of_several_stores_that_of_the_most_shards_is_read(tmp_path):
    """As text, orderings-1000 comes before orderings-250."""
    for shards in (250, 1_000):
        header = replace(HEADER, shards=shards, example_tokens=(1,) * 2 * shards)
        create_store(tmp_path / f"orderings-{shards}", header)
    assert _store_of(TESTS["sharded_exact"], tmp_path).header.shards == 1_000


def test_a_folder_without_stores_is_named(tmp_path, refused):
    assert "stores.json" in refused("leaderboard", tmp_path)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({}, "canaries"),
        ({"canaries": 3}, "canaries"),
        ({"canaries": ["a"]}, "canaries"),
        ({"canaries": {"a": "b"}}, "canaries.a"),
        ({"canaries": {"a": {"dup_count": "often"}}}, "canaries.a.dup_count"),
        ({"canaries": {"../a": {"dup_count": 1}}}, "../a"),
        ({"canaries": {"/a": {"dup_count": 1}}}, "/a"),
    ],
)
def test_a_wrong_fact_of_a_folder_is_named(tmp_path, facts, named):
    (tmp_path / "stores.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=rf"stores\.json: .*{re.escape(named)}"):
        score_statistics(tmp_path)
