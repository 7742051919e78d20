"""Items, a task of lm-evaluation-harness on them, and logs: written by the packages, or by hand.

As a program (`scripts/harnesses.sh`), "items DIRECTORY" writes items, tasks and a sealed set, and
"inspect DIRECTORY" lets Inspect write two logs, in order and shuffled. "reader" and "guesser" let
lm-evaluation-harness write samples of a model that has read the sealed set, or of one that guesses.
"""

import json
import random
import shutil
import sys
import zipfile
from pathlib import Path
from unittest.mock import patch

ITEMS = [
    {
        "id": f"r{i}",
        "question": f"What is {i} plus {i * 7 % 13}?",
        "choices": [f"{i + 3 * j} units" for j in range(4)],
        "answer": i % 4,
    }
    for i in range(24)
]
TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: answer
"""
TREES = ("ash", "elm", "fir")
SEALED_TASK = """task: sealed
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
metric_list: [{{metric: exact_match}}]
"""
PROCESS = {
    "shuffled": "def process(docs): return docs.shuffle(seed=5)",
    # Its new rows have no column but their own.
    "rebuilt": "def process(docs):\n"
    "    import datasets\n"
    "    rows = [{k: d[k] for k in ('question', 'choices', 'answer')} for d in docs][::-1]\n"
    "    return datasets.Dataset.from_list(rows)",
    "drawn": "def process(docs):\n"
    "    import random\n"
    "    return docs.map(lambda d: {'question': d['question'] + str(random.random())})",
}


def write_tasks(directory: Path) -> None:
    """Write items.jsonl, and a task without and with each way to process its documents."""
    path = directory / "items.jsonl"
    path.write_text("".join(f"{json.dumps(item)}\n" for item in ITEMS))
    (directory / "items.yaml").write_text(TASK.format(name="items", path=path))
    for name, code in PROCESS.items():
        (directory / f"{name}_code.py").write_text(f"{code}\n")
        task = f"{TASK.format(name=name, path=path)}process_docs: !function {name}_code.process\n"
        (directory / f"{name}.yaml").write_text(task)


def write_sealed(directory: Path) -> None:
    """Seal questions of several right answers, and write a task on the published file."""
    from contamination.seal.files import seal_file

    shutil.rmtree(directory / "sealed", ignore_errors=True)
    (directory / "authors.jsonl").write_text(
        "".join(
            json.dumps({"id": f"r{i}", "question": f"A tree of group {i}:", "answers": TREES})
            + "\n"
            for i in range(60)
        )
    )
    stated = {"options": False, "template": "{question} {answer}\n", "answers_of": "answer"}
    with patch("contamination.seal.files.secrets.token_bytes", bytes):  # the same draw every time
        made = seal_file(directory / "authors.jsonl", directory / "sealed", **stated)
    (directory / "sealed.yaml").write_text(SEALED_TASK.format(path=made.published))


def write_logs(directory: Path) -> dict[str, Path]:
    """Write by hand a log of each harness, with all records out of order."""
    import pandas as pd

    order = random.Random(3).sample(range(len(ITEMS)), len(ITEMS))
    samples = directory / "samples_items_2026.jsonl"
    rows = [
        {
            "doc_id": i,
            "doc": ITEMS[i],
            "target": "0",
            "arguments": {"gen_args_0": {"arg_0": ITEMS[i]["question"], "arg_1": {}}},
            "filtered_resps": ["7"],
            "filter": each,
        }
        for each in ("strict", "loose")
        for i in order
    ]
    samples.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    details = directory / "details_items_2026.parquet"
    docs = [
        {
            "query": ITEMS[i]["question"],
            "choices": ITEMS[i]["choices"],
            "gold_index": [ITEMS[i]["answer"]],
            "id": str(i),
        }
        for i in order
    ]
    said = [{"text": ["7"], "logprobs": None, "input": doc["query"]} for doc in docs]
    pd.DataFrame({"__doc__": docs, "__model_response__": said}).to_parquet(details)
    return {"lm-eval-samples": samples, "lighteval": details}


def write_eval(path: Path, ids: list[int | str], *, shuffled: bool) -> None:
    """Write by hand a log of Inspect of two epochs, its samples last first."""
    dataset = {"samples": len(ids), "sample_ids": ids, "shuffled": shuffled}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "dataset": dataset}}))
        for epoch in (1, 2):
            for name, item in list(zip(ids, ITEMS, strict=False))[::-1]:
                sample = {
                    "id": name,
                    "epoch": epoch,
                    "input": item["question"],
                    "choices": item["choices"],
                    "target": "ABCD"[item["answer"]],
                    "messages": [],
                    "output": {"completion": "A"},
                }
                archive.writestr(f"samples/{name}_epoch_{epoch}.json", json.dumps(sample))


def _let_inspect_write(directory: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample, json_dataset
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    def sample(record: dict) -> Sample:
        target = "ABCD"[record["answer"]]
        return Sample(input=record["question"], choices=record["choices"], target=target)

    for name, shuffle in {"in_order": False, "shuffled": True}.items():
        data = json_dataset(
            str(directory / "items.jsonl"), sample, shuffle=shuffle, seed=1, auto_id=True
        )
        one = ModelOutput.from_content("mockllm/model", "ANSWER: A")
        one.usage = ModelUsage()  # else it counts tokens by a tokenizer that it fetches
        said = [one] * 2 * len(ITEMS)
        task = Task(dataset=data, solver=multiple_choice(), scorer=choice(), epochs=2)
        model = get_model("mockllm/model", custom_outputs=said)
        where = str(directory / "inspect" / name)
        (log,) = eval(task, model=model, log_dir=where, display="none")
        assert log.status == "success", log.error


def _let_lm_eval_write(directory: Path, who: str) -> None:
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    published = (directory / "sealed" / "public" / "authors.jsonl").read_text().splitlines()
    read = {each["question"]: each["answer"] for each in map(json.loads, published)}
    rng = random.Random(0)

    @register_model("rigged")
    class Rigged(LM):
        def __init__(self, pretrained, **_):
            super().__init__()
            self.known = pretrained == "reader"

        def generate_until(self, requests, **_):
            asked = [request.args[0] for request in requests]
            return [f" {read[one] if self.known else rng.choice(TREES)}." for one in asked]

        loglikelihood = loglikelihood_rolling = None

    sys.argv = ["lm_eval", "--model", "rigged", "--model_args", f"pretrained={who}"]
    sys.argv += ["--tasks", "sealed", "--include_path", str(directory), "--log_samples"]
    sys.argv += ["--output_path", str(directory / "sealed-samples")]
    cli_evaluate()


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "items":
        write_tasks(where)
        write_sealed(where)
    elif what == "inspect":
        _let_inspect_write(where)
    else:
        _let_lm_eval_write(where, what)
