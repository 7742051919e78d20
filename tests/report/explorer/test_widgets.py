"""The widgets of the notebook: what a dropdown changes, and the notebook without a reader."""

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.files import sha256_of, write_json
from contamination.pretraining.experiment import Experiment
from contamination.report.explorer.scored import Found, ScoredSet
from contamination.report.explorer.views import Viewer
from contamination.report.explorer.widgets import Explorer
from contamination.report.explorer.wording import plain_p
from contamination.report.notebooks import execute_notebook
from contamination.scoring.store import open_store
from fakes.data_fixtures import EXAMPLES, ROOT, SETS, write_profile
from fakes.made_up_sets import HOSTILE, make_set, make_store


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    assert not plt.get_fignums(), "a figure was left open"
    mpl.use(before)


def _p(scored: ScoredSet, test: str, shards: int) -> str:
    stores = {(s.header.kind, s.header.shards): s for s in map(open_store, scored.stores)}
    result = TESTS[test].result(stores[TESTS[test].kind, shards], 9)
    return f"p = {plain_p(result.log10_p)}"


def test_dropdowns_change_what_is_shown(found: Found) -> None:
    explorer = Explorer(found.sets)
    assert [c.value for c in explorer._controls] == ["reader", "planted", "successor", 2, "32"]
    assert _p(found.sets[0], "successor", 2) in explorer.card.value
    explorer.dataset.value = "unread"
    assert _p(found.sets[1], "successor", 2) in explorer.card.value
    explorer.model.value = "stranger"
    assert explorer.dataset.value == "unread"
    assert _p(found.sets[3], "successor", 2) in explorer.card.value
    explorer.test.value = "sharded_exact"
    explorer.shards.value = 4
    assert _p(found.sets[3], "sharded_exact", 4) in explorer.card.value
    assert explorer.examples.value.count("<details>") == 4
    assert explorer.b.disabled
    before = explorer.charts.value
    explorer.shards.value = 6
    assert explorer.examples.value.count("<details>") == 6
    assert explorer.charts.value != before


def test_another_test_starts_from_what_was_set_in_advance_for_it(found: Found) -> None:
    explorer = Explorer(found.sets)
    explorer.b.value = "8"
    assert "not what was set in advance" in explorer.card.value
    explorer.test.value = "boundary"
    assert (explorer.shards.value, explorer.b.value) == (6, "16")
    assert "were set in advance" in explorer.card.value
    explorer.b.value = "all"
    explorer.dataset.value = "unread"
    assert explorer.b.value == "all"


def test_a_set_is_read_when_it_is_chosen_and_once(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    real = Viewer.view

    def noting(viewer: Viewer, scored: ScoredSet):
        read.append((scored.model, scored.test_set.name))
        return real(viewer, scored)

    monkeypatch.setattr(Viewer, "view", noting)
    explorer = Explorer(found.sets)
    assert read == [("reader", "planted")]
    explorer.dataset.value = "unread"
    explorer.dataset.value = "planted"
    explorer.test.value = "sharded_exact"
    assert read == [("reader", "planted"), ("reader", "unread")]


def test_everything_is_there(found: Found) -> None:
    explorer = Explorer(found.sets)
    outcomes = Viewer().view(found.sets[0]).outcomes
    assert explorer.tests.value.count("<tr>") == 1 + len(outcomes)
    for outcome in outcomes:
        assert plain_p(outcome.result.log10_p) in explorer.tests.value
    assert explorer.charts.value.count("<img alt=") == 2
    texts = make_set("planted").examples
    places = [explorer.examples.value.index(escape(text)) for text in texts]
    assert places == sorted(places)
    assert "order carry information" in explorer.diagnostics.value


def test_texts_are_escaped(found: Found) -> None:
    explorer = Explorer(found.sets)
    assert escape(HOSTILE) in explorer.examples.value
    assert "<img src=x" not in explorer.examples.value


def test_a_set_without_a_usable_store_says_why(found: Found, tmp_path: Path) -> None:
    test_set = make_set("short")
    store = make_store(tmp_path, "reader", test_set, "successors", 2, tokens_per_example=4)
    short = ScoredSet("reader", "Made up", test_set, (store,), {"orderings": 6, "successors": 2})
    explorer = Explorer([*found.sets, short])
    explorer.dataset.value = "short"
    assert "keeps 4 tokens" in explorer.card.value
    assert explorer.examples.value == ""
    explorer.dataset.value = "planted"
    assert _p(found.sets[0], "successor", 2) in explorer.card.value


def test_nothing_to_explore() -> None:
    with pytest.raises(InputError, match="no scored set"):
        Explorer([])


def test_the_notebook_runs_without_a_reader(tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "tiny.yaml")
    run = Experiment(profile, tmp_path / "build")
    template = {"template": "text/1"}
    write_json(run.corpus / "corpus.json", {"canaries": dict.fromkeys(SETS, template)})
    texts = [f"example {i}" for i in range(EXAMPLES)]
    path = run.corpus / "canaries" / "one.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    test_set = run.test_set("one")
    make_store(run.build / "stores", "clean", test_set, "successors", 2, tokens_per_example=32)
    notebook = tmp_path / "notebooks" / "explore_mmlu.ipynb"
    notebook.parent.mkdir()
    source = ROOT / "notebooks" / "explore_mmlu.ipynb"
    notebook.write_bytes(source.read_bytes())
    (tmp_path / "notebooks" / "01_canary_eval.ipynb").touch()  # the profile names it
    target = execute_notebook(notebook, run, profile, tmp_path / "results")
    cells = json.loads(target.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert "".join(outputs[0]["text"]).startswith("1 scored sets; 5 left out")
    assert any("application/vnd.jupyter.widget-view+json" in o.get("data", {}) for o in outputs)
    assert sha256_of(source) == sha256_of(notebook)
