"""Logs of each harness, written by hand: the answers of models, and fields that give the right one.

Each writer takes a folder and rows of (record, what the model wrote), and writes one answer to each
record. `Gold` is what stands in targets, scores and filtered answers, which no reader may look at.
"""

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from contamination.testsets.option_texts import LETTERS
from fakes.made_up_registry import jsonl

Rows = Sequence[tuple[dict[str, Any], str]]


@dataclass(frozen=True)
class Gold:
    """The right answer according to a harness, and its score of an answer."""

    text: str = "7"
    number: int = 0
    score: float = 0.0


RIGHT = Gold()


def asked(record: dict[str, Any]) -> str:
    return str(record["question"])


def lm_eval_samples(folder: Path, samples: Sequence[dict[str, Any]]) -> Path:
    """Write samples, and the results beside them that name the model."""
    (folder / "results_T.json").write_text('{"model_name": "m"}')
    path = folder / "samples_quiz_T.jsonl"
    path.write_bytes(jsonl(list(samples)))
    return path


def generated_sample(number: int, record: dict[str, Any], text: str, gold: Gold = RIGHT) -> dict:
    return {
        "doc_id": number,
        "doc": record,
        "target": gold.text,
        "arguments": {"gen_args_0": {"arg_0": asked(record), "arg_1": {"until": ["\n"]}}},
        "resps": [[text]],
        "filtered_resps": [gold.text],
        "filter": "none",
        "exact_match": gold.score,
    }


def chosen_sample(
    number: int, record: dict[str, Any], values: dict[str, Any], gold: Gold = RIGHT
) -> dict:
    """Return a sample of which the model gave each continuation a log-probability."""
    requests = [{"arg_0": asked(record), "arg_1": f" {text}"} for text in values]
    return {
        "doc_id": number,
        "doc": record,
        "target": gold.text,
        "arguments": {f"gen_args_{i}": each for i, each in enumerate(requests)},
        "resps": [[[value, "False"]] for value in values.values()],
        "filtered_resps": [[str(-float(gold.number == i)), "True"] for i in range(len(values))],
        "filter": "none",
        "acc": gold.score,
    }


def generated(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    samples = [generated_sample(i, record, said, gold) for i, (record, said) in enumerate(rows)]
    return lm_eval_samples(folder, samples)


def chosen(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    samples = []
    for i, (record, said) in enumerate(rows):
        values = {letter: "-1.5" if letter == said else "-11.0" for letter in "ABCD"}
        samples.append(chosen_sample(i, record, values, gold))
    return lm_eval_samples(folder, samples)


def inspect_sample(
    name: int | str, record: dict[str, Any], text: str, gold: Gold = RIGHT, epoch: int = 1
) -> dict[str, Any]:
    question = [{"type": "text", "text": asked(record)}]
    score = {"value": gold.score, "answer": gold.text, "explanation": gold.text}
    return {
        "id": name,
        "epoch": epoch,
        "input": asked(record),
        "choices": record.get("choices"),
        "target": gold.text,
        "messages": [
            {"role": "user", "content": question, "source": "input"},
            {"role": "assistant", "content": text, "source": "generate"},
        ],
        "output": {"completion": text},
        "scores": {"match": score},
    }


def write_eval(
    path: Path, samples: Sequence[dict[str, Any]], header: dict[str, Any] | None = None
) -> Path:
    """Write an .eval log; without a header a usual one."""
    about = header or {"status": "success", "eval": {"model": "m"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(about))
        for sample in samples:
            name = f"samples/{sample.get('id')}_epoch_{sample.get('epoch', 1)}.json"
            archive.writestr(name, json.dumps(sample))
    return path


def inspect(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    pairs = enumerate(rows, start=1)
    samples = [inspect_sample(i, record, said, gold) for i, (record, said) in pairs]
    return write_eval(folder / "a.eval", samples)


def packed(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    """The same as Inspect packs it, by Zstandard, which zipfile cannot write before Python 3.14."""
    stored = inspect(folder, rows, gold).rename(folder / "stored.eval")
    with zipfile.ZipFile(stored) as source, zipfile.ZipFile(folder / "a.eval", "w") as archive:
        for one in source.infolist():
            data = pyarrow.compress(source.read(one), "zstd", asbytes=True)
            archive.writestr(one.filename, data)
            archive.getinfo(one.filename).compress_type = 93
    return folder / "a.eval"


def inspect_json(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    pairs = enumerate(rows, start=1)
    samples = [inspect_sample(i, record, said, gold) for i, (record, said) in pairs]
    whole = {"status": "success", "eval": {"model": "m"}, "samples": samples}
    path = folder / "a.json"
    path.write_text(json.dumps(whole, indent=2))
    return path


def write_details(folder: Path, docs: list[dict], responses: list[dict], gold: Gold) -> Path:
    path = folder / "details" / "m" / "T" / "details_quiz_T.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics = [{"acc": gold.score} for _ in docs]
    table = {"doc": docs, "model_response": responses, "metric": metrics}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


def lighteval(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    """The likeliest of four choices."""
    docs = []
    responses = []
    for i, (record, said) in enumerate(rows):
        question = asked(record)
        right = [gold.number % 4]
        docs.append({"id": str(i), "query": question, "choices": [*"ABCD"], "gold_index": right})
        values = [-1.0 if letter == said else -2.0 for letter in "ABCD"]
        responses.append({"input": question, "text": [], "logprobs": values})
    return write_details(folder, docs, responses, gold)


def lighteval_text(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    docs = []
    responses = []
    for i, (record, said) in enumerate(rows):
        question = asked(record)
        right = [gold.number % 2]
        docs.append({"id": str(i), "query": question, "choices": ["x", "y"], "gold_index": right})
        answer = {"text": [said], "text_post_processed": [gold.text]}
        responses.append({"input": question, "logprobs": None} | answer)
    return write_details(folder, docs, responses, gold)


def helm(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    """Letters of an order of its own where there are options, and each question perturbed."""
    states = []
    for i, (record, said) in enumerate(rows):
        text = f" {said}"
        mapping = None
        if "choices" in record:
            text = " Z"
            chosen = record["choices"][LETTERS.index(said)]
            others = [option for option in record["choices"] if option != chosen]
            mapping = dict(zip("ZWXY", [chosen, *others], strict=True))
        reference = {"output": {"text": gold.text}, "tags": ["correct"] * (gold.number % 2)}
        instance = {"id": f"id{i}", "input": {"text": asked(record)}, "references": [reference]}
        state = {
            "instance": instance,
            "request": {"prompt": asked(record)},
            "result": {"completions": [{"text": text}], "success": True},
            "output_mapping": mapping,
            "annotations": {"score": gold.score},
        }
        states.append(state)
        perturbed = instance | {"perturbation": {"name": "typos"}}
        late = {"completions": [{"text": "perturbed"}]}
        states.append(state | {"instance": perturbed, "result": late})
    path = folder / "scenario_state.json"
    whole = {"adapter_spec": {"model": "m"}, "request_states": states}
    path.write_text(json.dumps(whole, indent=2))
    return path


def table(folder: Path, rows: Rows, gold: Gold = RIGHT) -> Path:
    """A table of JSON lines, and columns that say what is right."""
    lines = []
    for i, (record, said) in enumerate(rows, start=1):
        scored = {"target": gold.text, "gold": gold.text, "score": gold.score}
        lines.append({"id": record.get("id", i), "model": "m", "answer": said} | scored)
    path = folder / "m.jsonl"
    path.write_bytes(jsonl(lines))
    return path


Writer = Callable[[Path, Rows, Gold], Path]
# What the model wrote is a text in these, and the letter of an option in those.
OF_TEXT: list[Writer] = [generated, inspect, packed, inspect_json, lighteval_text, helm, table]
OF_LETTERS: list[Writer] = [*OF_TEXT, chosen, lighteval]
