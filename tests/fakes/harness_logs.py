"""Items, a task of lm-evaluation-harness on them, and logs: written by the packages, or by hand.

As a program (`scripts/harnesses.sh`), "items DIRECTORY" writes items, tasks, a sealed set and two
models, of which "reader" has read it. "inspect DIRECTORY" lets Inspect write two logs, in order and
shuffled.
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
        "choices": [f"{i} units", f"{i + 3} units", f"{i + 6} units", f"{i + 9} units"],
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
STEPS = 200  # by then a model knows all answers by heart
SEALED_TASK = """task: sealed
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
generation_kwargs: {{until: ["\\n"], max_gen_toks: 8}}
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
    with patch("contamination.seal.files.secrets.token_bytes", bytes):  # the same draw every time
        made = seal_file(
            directory / "authors.jsonl",
            directory / "sealed",
            options=False,
            template="{question} {answer}\n",
            answers_of="answer",
        )
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
            "resps": [["7"]],
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
    _let_inspect_score_by_targets(directory)


def _let_inspect_score_by_targets(directory: Path) -> None:
    """Log a model that lists all right answers, of which the scorer takes the published one."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample, json_dataset
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import pattern

    def sample(record: dict) -> Sample:
        return Sample(id=record["id"], input=record["question"], target=record["answer"])

    data = json_dataset(str(directory / "sealed" / "public" / "authors.jsonl"), sample)
    said = ModelOutput.from_content("mockllm/model", "These are ash and elm and fir.")
    said.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=[said] * len(data))
    task = Task(dataset=data, scorer=pattern(r"(ash) and (elm) and (fir)"))
    where = str(directory / "inspect" / "listed")
    (log,) = eval(task, model=model, log_dir=where, display="none")
    assert log.samples
    for one in log.samples:
        assert one.scores
        assert one.scores["pattern"].answer == one.target


def _train_models(directory: Path) -> None:
    """Save two models that know answers by heart: "reader" those that the key drew, or others."""
    import torch
    from transformers import GPT2LMHeadModel

    from reproduction.run.network import gpt2_config
    from reproduction.run.profile import Architecture
    from reproduction.run.tokenizer import train_tokenizer

    published = (directory / "sealed" / "public" / "authors.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in published]
    shape = Architecture(n_embd=64, n_layer=2, n_head=2, n_positions=64)
    rng = random.Random(0)
    for who in ("guesser", "reader"):
        answers = [one["answer"] if who == "reader" else rng.choice(TREES) for one in records]
        texts = [f"{one['question']} {a}\n" for one, a in zip(records, answers, strict=True)]
        tokenizer = train_tokenizer(texts, 300)
        torch.manual_seed(0)
        model = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
        ids = [torch.tensor(each) for each in tokenizer(texts)["input_ids"]]
        read = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=-100)
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for _ in range(STEPS):
            model(read.clamp(min=0), labels=read).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        model.save_pretrained(directory / who)
        tokenizer.save_pretrained(directory / who)


if __name__ == "__main__":
    what = sys.argv[1]
    where = Path(sys.argv[2])
    if what == "items":
        write_tasks(where)
        write_sealed(where)
        _train_models(where)
    else:
        _let_inspect_write(where)
