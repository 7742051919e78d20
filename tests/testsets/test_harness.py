"""Sets that harnesses have are in the order of the stored data set, whatever a log's order is.

`scripts/harnesses.sh` runs these tests where the packages themselves have written the logs.
"""

import json
import os
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.seal.files import verify
from contamination.seal.logs import audit_logs
from contamination.testsets.item_sets import open_items
from contamination.testsets.logs.read import read_log
from contamination.testsets.sources import open_test_set
from fakes.harness_logs import ITEMS, write_eval, write_logs, write_tasks

QUESTIONS = [item["question"] for item in ITEMS]
OPTIONS = [tuple(item["choices"]) for item in ITEMS]


def _check(what: str, template: str = "text/1") -> None:
    """Fail unless the set has all items in order, and its options are those that were written."""
    examples = open_test_set(what, template=template).examples
    assert len(examples) == len(ITEMS)
    for text, item in zip(examples, ITEMS, strict=True):
        assert item["question"] in text
    items = open_items(what)
    for text, options, item in zip(items.examples, OPTIONS, ITEMS, strict=True):
        shown = "".join(
            f"{letter}. {option}\n" for letter, option in zip("ABCD", options, strict=True)
        )
        assert shown in text
        assert text.endswith(f"Answer: {'ABCD'[item['answer']]}\n")


@pytest.mark.parametrize(
    ("kind", "template"), [("lm-eval-samples", "{question}\n"), ("lighteval", "text/1")]
)
def test_a_log_is_put_back_into_the_stored_order(kind, template, tmp_path) -> None:
    _check(f"{kind}:{write_logs(tmp_path)[kind]}", template)


@pytest.mark.parametrize(
    ("ids", "shuffled"),
    [
        ([f"r{i}" for i in range(24)], False),
        (list(range(1, 25)), True),  # which Inspect counts before it shuffles
    ],
)
def test_samples_of_inspect_are_put_back(ids, shuffled, tmp_path) -> None:
    write_eval(tmp_path / "log.eval", ids, shuffled=shuffled)
    _check(f"inspect:{tmp_path / 'log.eval'}")


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("inspect:missing.eval", "missing.eval"),
        ("inspect:names.eval", "shuffled"),
        ("inspect:text.eval", "text.eval"),
        ("lm-eval-samples:table.jsonl", "table.jsonl"),
        ("lighteval:numbered.jsonl", "numbered.jsonl"),
        ("lm-eval:nothing.yaml", "nothing.yaml"),
    ],
)
def test_what_has_no_order_is_refused(what, named, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_eval(Path("names.eval"), [f"r{i}" for i in range(24)], shuffled=True)
    Path("text.eval").write_text("no zip file")
    Path("table.jsonl").write_text('{"id": "first", "answer": "A"}\n')
    Path("numbered.jsonl").write_text('{"id": 1, "answer": "A"}\n')
    with pytest.raises(InputError, match=named):
        open_test_set(what)


@pytest.mark.parametrize("open_set", [open_test_set, open_items])
@pytest.mark.parametrize(
    ("kind", "indent"),
    [("lm-eval-samples", None), ("lighteval", None), ("inspect", None), ("inspect", 1)],
)
def test_a_log_without_its_prefix_is_told_the_name_that_opens_it(
    kind, indent, open_set, tmp_path
) -> None:
    path = tmp_path / "log.json"
    if kind == "inspect":
        path.write_text(json.dumps({"eval": {}, "samples": [], "status": "success"}, indent=indent))
    else:
        path = write_logs(tmp_path)[kind]
    with pytest.raises(InputError) as refused:
        open_set(str(path))
    assert f"name it {kind}:{path}" in str(refused.value)
    assert "template" not in str(refused.value)


def test_logs_that_no_suffix_of_a_set_has(tmp_path) -> None:
    path = tmp_path / "log.eval"
    write_eval(path, list(range(1, 25)), shuffled=False)
    with pytest.raises(InputError, match=f"name it inspect:{path}"):
        open_test_set(str(path))


def test_a_log_of_helm_is_no_test_set(tmp_path) -> None:
    path = tmp_path / "scenario_state.json"
    path.write_text(json.dumps({"adapter_spec": {}, "request_states": []}, indent=1))
    with pytest.raises(InputError, match=r"log of HELM.* give the data set itself"):
        open_test_set(path)


# --- what the packages write themselves -----------------------------------------------------------


@pytest.fixture
def written() -> Path:
    if "HARNESSES" not in os.environ:
        pytest.skip("scripts/harnesses.sh lets the packages write logs")
    return Path(os.environ["HARNESSES"])


@pytest.mark.harness
@pytest.mark.parametrize("task", ["items", "shuffled"])
def test_real_samples_of_lm_eval(task, written) -> None:
    """Where process_docs shuffles, doc_id counts the shuffled order, and the log has no other."""
    (path,) = written.glob(f"lm-eval-samples/*/samples_{task}_*.jsonl")
    if task == "items":
        _check(f"lm-eval-samples:{path}", "{question}\n")
    else:
        found = open_test_set(f"lm-eval-samples:{path}", template="{question}\n").examples
        assert sorted(found) == sorted(f"{question}\n" for question in QUESTIONS)


@pytest.mark.harness
@pytest.mark.parametrize("log", ["in_order", "shuffled"])
def test_real_logs_of_inspect(log, written) -> None:
    (path,) = written.glob(f"inspect/{log}/*.eval")
    _check(f"inspect:{path}")


@pytest.mark.harness
def test_real_samples_tell_who_has_read_a_sealed_set(written) -> None:
    public = written / "sealed" / "public"
    private = written / "sealed" / "private"
    sealed = verify(None, public / "seal.json", private / "key.json")
    logs = sorted(written.glob("sealed-samples/**/samples_sealed_*.jsonl"))
    guesser, reader = audit_logs(sealed, map(read_log, logs))
    assert Path(guesser.model).name == "guesser"
    assert guesser.admissible == 60
    assert Path(reader.model).name == "reader"
    assert reader.admissible == 60
    assert reader.p < 1e-4
    assert guesser.p > 0.01


@pytest.mark.harness
def test_a_real_score_of_inspect_accuses_nobody(written) -> None:
    """Its answer is the published one each time: the scorer looks for that."""
    public = written / "sealed" / "public"
    private = written / "sealed" / "private"
    sealed = verify(None, public / "seal.json", private / "key.json")
    (path,) = written.glob("inspect/listed/*.eval")
    (found,) = audit_logs(sealed, [read_log(path)])
    assert found.records == 60
    assert found.admissible == 0
    assert found.missing == 0


@pytest.mark.harness
@pytest.mark.parametrize("task", ["items", "shuffled", "rebuilt"])
def test_a_real_task_is_in_the_stored_order(task, tmp_path) -> None:
    pytest.importorskip("lm_eval")
    write_tasks(tmp_path)
    _check(f"lm-eval:{tmp_path / task}.yaml")


@pytest.mark.harness
def test_a_task_that_draws_what_it_shows_is_refused(tmp_path) -> None:
    pytest.importorskip("lm_eval")
    write_tasks(tmp_path)
    with pytest.raises(InputError, match="at random"):
        open_test_set(f"lm-eval:{tmp_path / 'drawn.yaml'}")
