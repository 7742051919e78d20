"""One tool asks about every set of a job; runs in the environment of that tool.

    PYTHON benchmarks/peer_tools.py TOOL JOB.json

`benchmarks/peers.py` starts it and reads the last line of its output, a JSON list with a row for
each set. The job names the model, its context, the sets with the texts of both sides, the checkout
of the tool and its settings. Tools are called as their authors call them; where a tool needs
something that a processor does not have, the replacement is said at its function. Processor time
is that of the question alone, with the loading of the model and without imports. Tokens are counted
where they enter the model, padding included.
"""

import importlib.metadata
import json
import os
import resource
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from multiprocessing import Value
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

TOKENS_READ = Value("q", 0)  # shared with processes that a tool forks
SEED = 0


class Answer(NamedTuple):
    """A p-value, and whether the tool itself calls the set contaminated."""

    p: float
    accused: bool


def count_tokens(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Add the tokens that enter the embedding of a model."""
    is_of_tokens = isinstance(module, nn.Embedding) and module.num_embeddings > 1024
    if is_of_tokens:
        with TOKENS_READ.get_lock():
            TOKENS_READ.value += inputs[0].numel()


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def benchleak(job: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """Min-K% against a reference, with the defaults of the command (k = 20, 200 texts a side).

    The reference is the bundled one, or the held-out texts of the same kind. These are handed over
    as a list, since a file of references holds one line for each and some texts have more.
    """
    from benchleak.core import scan
    from benchleak.data import load_reference
    from benchleak.detectors.pretrain import MinKProbDetector
    from benchleak.loading import load_model

    limit = job["settings"]["limit"]
    reference_kind = job["settings"]["reference"]

    def ask(test_set: dict[str, Any]) -> Answer:
        model, tokenizer = load_model(job["model"])
        detector = MinKProbDetector(model, tokenizer, max_length=job["context"])
        if reference_kind == "bundled":
            reference = load_reference(limit=limit)
        else:
            reference = [text.strip() for text in test_set["held_out"][:limit]]
        result = scan(
            detector,
            [text.strip() for text in test_set["published"][:limit]],
            reference,
            detector_name="pretrain",
            benchmark_name=test_set["name"],
        )
        return Answer(p=float(result.p_value), accused=bool(result.contaminated))

    return ask


def reference_script(job: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """The sharded test of Oren et al. by the `main` of their script, unchanged.

    The script wants graphics cards: here it is told of one card, which is the processor. It takes
    the records as a JSON list of texts.
    """

    def one_card() -> list[types.SimpleNamespace]:
        return [types.SimpleNamespace(id="cpu")]

    cards = types.ModuleType("GPUtil")
    cards.getGPUs = one_card  # type: ignore[attr-defined]
    sys.modules["GPUtil"] = cards
    nn.Module.cuda = nn.Module.to  # type: ignore[method-assign]
    sys.path.insert(0, job["checkout"])
    import compute_sharded_comparison_test as script

    def ask(test_set: dict[str, Any]) -> Answer:
        with tempfile.TemporaryDirectory() as directory:
            records = Path(directory) / "records.json"
            log = Path(directory) / "log.json"
            records.write_text(json.dumps(test_set["published"]))
            script.main(
                job["model"],
                str(records),
                context_len=job["context"],
                stride=job["context"] // 2,
                num_shards=job["settings"]["shards"],
                permutations_per_shard=job["settings"]["permutations"],
                random_seed=SEED,
                log_file_path=str(log),
            )
            p = json.loads(log.read_text())["pval"]
        return Answer(p=p, accused=p < 0.05)

    return ask


def dataset_inference(job: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """Dataset inference by the functions of its repository, in the order of its `linear_di.py`.

    Half of each side trains the linear model, and the other half is tested. Features are those of
    its demonstration (Min-K%, Max-K%, perplexity, zlib): perturbed texts and reference models come
    from a hub. The model is loaded here, since its own loader asks for a graphics card.
    """
    sys.path.insert(0, job["checkout"])
    import linear_di
    from metrics import aggregate_metrics
    from transformers import AutoModelForCausalLM, AutoTokenizer

    features = ["k_min_probs", "ppl", "zlib_ratio", "k_max_probs"]

    def side_metrics(texts: Sequence[str], model: Any, tokenizer: Any) -> dict[str, list[float]]:
        return aggregate_metrics(model, tokenizer, {"text": list(texts)}, features, None)

    def ask(test_set: dict[str, Any]) -> Answer:
        np.random.seed(SEED)  # noqa: NPY002 - their functions draw from it
        torch.manual_seed(SEED)
        tokenizer = AutoTokenizer.from_pretrained(job["model"])
        tokenizer.pad_token = tokenizer.eos_token
        tokenizer.padding_side = "right"
        tokenizer.model_max_length = job["context"]
        model = AutoModelForCausalLM.from_pretrained(job["model"])
        members = side_metrics(test_set["published"], model, tokenizer)
        others = side_metrics(test_set["held_out"], model, tokenizer)
        member_columns = []
        other_columns = []
        for name in members:
            for side, columns in ((members, member_columns), (others, other_columns)):
                values = np.array(side[name])
                columns.append(linear_di.remove_outliers(values, outliers="clip"))
        member_rows, other_rows = linear_di.normalize_and_stack(member_columns, other_columns)
        np.random.shuffle(member_rows)  # noqa: NPY002
        np.random.shuffle(other_rows)  # noqa: NPY002
        half = min(len(member_rows), len(other_rows)) // 2
        train, tested = linear_di.get_dataset_splits(member_rows, other_rows, half)
        classifier = linear_di.train_model(*train, num_epochs=1000)
        predictions, _ = linear_di.get_predictions(classifier, *tested)
        labels = tested[1].numpy()
        p_values = linear_di.get_p_value_list(predictions[labels == 0], predictions[labels == 1])
        p = float(p_values[-1])  # of all texts of the tested halves
        return Answer(p=p, accused=p < job["settings"]["alpha"])

    return ask


def contamination_test(job: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """`contamination test` of this project with its defaults: the order of the records."""
    from contamination import ModelSource, Request, TransformersScorer, run_audit
    from contamination.testsets.example_set import make_test_set

    def ask(test_set: dict[str, Any]) -> Answer:
        records = [("", {"text": text}) for text in test_set["published"]]
        examples = make_test_set(test_set["name"], records, "{text}", where=test_set["name"])
        with tempfile.TemporaryDirectory() as directory:
            scorer = TransformersScorer(ModelSource(job["model"]))
            audit = run_audit(scorer, examples, Request(directory=directory))
        return Answer(p=audit.results[0].p, accused=audit.verdict(0.05).status == 1)

    return ask


def contamination_compare(job: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """`contamination compare` of this project with its defaults."""
    from contamination import ModelSource, SidesRequest, TransformersScorer, compare
    from contamination.testsets.example_set import make_test_set

    def ask(test_set: dict[str, Any]) -> Answer:
        sides = []
        for side in ("published", "held_out"):
            records = [("", {"text": text}) for text in test_set[side]]
            sides.append(make_test_set(side, records, "{text}", where=side))
        with tempfile.TemporaryDirectory() as directory:
            scorer = TransformersScorer(ModelSource(job["model"]))
            request = SidesRequest(directory=Path(directory))
            comparison = compare(scorer, sides[0], sides[1], request)
        return Answer(p=comparison.result.p, accused=comparison.verdict(0.05).status == 1)

    return ask


TOOLS = {
    "benchleak": benchleak,
    "reference script": reference_script,
    "dataset inference": dataset_inference,
    "contamination test": contamination_test,
    "contamination compare": contamination_compare,
}


def versions() -> str:
    """Return the versions of the packages that can change a result."""
    found = []
    for package in ("benchleak", "torch", "transformers", "numpy", "scipy"):
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "; ".join(found)


def main() -> None:
    """Ask one tool about every set, and print a JSON list."""
    job = json.loads(Path(sys.argv[2]).read_text())
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    ask = TOOLS[sys.argv[1]](job)
    nn.modules.module.register_module_forward_pre_hook(count_tokens)
    rows = []
    for test_set in job["sets"]:
        seconds_before = processor_seconds()
        tokens_before = TOKENS_READ.value
        answer = ask(test_set)
        row = {
            "dataset": test_set["name"],
            "p": answer.p,
            "accused": answer.accused,
            "tokens_read": TOKENS_READ.value - tokens_before,
            "processor_seconds": round(processor_seconds() - seconds_before, 2),
            "versions": versions(),
        }
        rows.append(row)
    print()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
