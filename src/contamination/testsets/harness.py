"""Test sets as evaluation harnesses have them, in the order in which they were published.

- `lm-eval:TASK`: a task of lm-evaluation-harness, by its name or its .yaml file.
- `lm-eval-samples:FILE`: `samples_*.jsonl`, which it writes with `--log_samples`.
- `inspect:FILE`: an `.eval` log of Inspect.
- `lighteval:FILE`: `details_*.parquet` of lighteval.

A log need not have this order: it is put back by the numbers that the harness gave the records of
the stored data set. A record has its `text`; of a multiple-choice item also `question`, `choices`
and `answer`, which the axis of options moves.
"""

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.testsets.logs import LogRecord, read_log, text_of, unpacked
from contamination.testsets.records import Record

STORED = "contamination: number in the stored data set"  # a column beside those of a task


def read_harness(what: str) -> tuple[str, list[Record]] | None:
    """Return name and records of a set that has one of the names above; None for any other text.

    Raises InputError for a task or a log that cannot be read, and where the published order or the
    texts cannot be told.
    """
    kind, given, rest = what.partition(":")
    path = Path(rest)
    if given and kind == "lm-eval":
        return path.stem, read_task(rest)
    if not given or kind not in READERS:
        return None
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a log of {kind}")
    try:
        return path.stem, READERS[kind](path)
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not as {kind} writes a log ({error!r}); give the log") from error


def _item(question: str, choices: Sequence[str], answer: Any, delimiter: str) -> dict[str, Any]:
    """Return the record of a multiple-choice item, or of a question with its answer."""
    right = choices[answer] if isinstance(answer, int) and choices else answer
    text = {"text": f"{question}{delimiter}{right}"}
    if not choices:
        return text
    return text | {"question": question, "choices": list(choices), "answer": answer}


# --- tasks of lm-evaluation-harness ---------------------------------------------------------------


def read_task(name: str) -> list[Record]:
    """Return the records of a task in the stored order of its test split, else validation split.

    A record is rendered by the task's own `doc_to_text`, `doc_to_choice` and `doc_to_target`. Its
    `process_docs` may leave records out or shuffle them: the stored order is put back. (A log of
    such a task counts the shuffled order; the task alone knows the stored one.) Where the choices
    are the same for all records, such as "A" to "D", they are labels: the options then are those of
    the record, whose own fields stay. Raises InputError as `read_harness`, for a group of tasks,
    and for one that draws at random.
    """
    import datasets

    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise InputError(
            f"lm-eval:{name}: lm-evaluation-harness is not installed; pip install "
            "'contamination[harness]'"
        ) from error
    path = Path(name)
    own = path.suffix in (".yaml", ".yml")
    if own and not path.is_file():
        raise InputError(f"{path}: no such file; give the .yaml file of a task")
    try:
        if own:
            import yaml

            manager = TaskManager(include_path=str(path.parent.absolute()), include_defaults=False)
            # The names of functions are tags of their own.
            name = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)["task"]
        else:
            manager = TaskManager()
        tasks = manager.load(name)["tasks"]
    except Exception as error:  # datasets, the hub, YAML, Jinja: no common base class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(f"lm-eval:{name}: the task cannot be opened ({reason})") from error
    if len(tasks) != 1:
        raise InputError(f"lm-eval:{name} is a group; give one of its tasks: {', '.join(tasks)}")
    (task,) = tasks.values()
    split = task.config.test_split or task.config.validation_split
    if split is None:
        raise InputError(f"lm-eval:{name} has neither a test nor a validation split; give another")
    datasets.disable_caching()  # what was drawn at random would be drawn once
    try:
        first, again = (_rendered(task, _in_stored_order(task, split)) for _ in range(2))
    finally:
        datasets.enable_caching()
    if first != again:
        raise InputError(
            f"lm-eval:{name}: process_docs draws at random what a record shows, so nobody knows "
            "which text was published; give the data set itself"
        )
    return [(f"document {number}", record) for number, record in enumerate(first)]


def _in_stored_order(task: Any, split: str) -> list[dict[str, Any]]:
    """Return the documents of a task, processed, in the order of the stored data set."""
    stored, process = task.dataset[split], task.config.process_docs
    if process is None:
        return list(stored)
    docs = list(process(stored.add_column(STORED, list(range(len(stored))))))
    if all(STORED in doc for doc in docs):
        docs.sort(key=lambda doc: doc[STORED])
        return [{key: value for key, value in doc.items() if key != STORED} for doc in docs]
    # It makes new columns alone: one document after the other keeps them in place.
    return [doc for one in range(len(stored)) for doc in process(stored.select([one]))]


def _rendered(task: Any, docs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = task.config.doc_to_choice is not None
    choices = [list(task.doc_to_choice(doc)) if listed else [] for doc in docs]
    labels = listed and len({*map(tuple, choices)}) == 1
    found = []
    for doc, options in zip(docs, choices, strict=True):
        question, answer = task.doc_to_text(doc), task.doc_to_target(doc)
        if isinstance(answer, list):  # of several right answers the first
            answer = answer[0] if answer else ""
        if isinstance(question, int):  # which of several beginnings is the right one
            found.append({"text": f"{options[question]}{task.config.target_delimiter}{answer}"})
            continue
        if options and isinstance(answer, str) and answer in options:
            answer = options.index(answer)
        item = _item(question, options, answer, task.config.target_delimiter)
        found.append({**doc, "text": item["text"]} if labels or not options else item)
    return found


# --- logs -----------------------------------------------------------------------------------------


def _samples(path: Path) -> list[Record]:
    """Documents of lm-evaluation-harness, which a log has once for each filter."""
    return [(one.place, dict(one.doc)) for one in _by_number(read_log(path))]


def _details(path: Path) -> list[Record]:
    """Documents of lighteval, which shuffles them always; their ids count the stored order."""
    found = []
    for one in _by_number(read_log(path)):
        doc = one.doc
        gold = doc["gold_index"]
        answer = int(gold if isinstance(gold, int) else next(iter(gold)))
        found.append((one.place, _item(doc["query"], list(doc["choices"]), answer, " ")))
    return found


def _inspect(path: Path) -> list[Record]:
    """Samples of Inspect, of which a log has as many as there are epochs."""
    logged = read_log(path)
    with zipfile.ZipFile(path) as archive:
        dataset = json.loads(unpacked(archive, archive.getinfo("header.json")))["eval"]["dataset"]
    order = {str(name): place for place, name in enumerate(dataset.get("sample_ids") or ())}
    if dataset.get("shuffled") or not order:
        # Ids that Inspect gave count from 1, before it shuffles.
        if any(one.number is None for one in logged):
            raise InputError(
                f"{path}: the task shuffled its samples, and their ids do not count: their "
                "published order is not in the log; give the data set itself"
            )
        ordered = _by_number(logged)
    else:
        once = {one.id: one for one in reversed(logged)}
        ordered = [once[name] for name in sorted(once, key=lambda name: order[name])]
    found = []
    for one in ordered:
        doc, target = one.doc, one.doc["target"]
        choices = list(doc.get("choices") or ())
        target = target if isinstance(target, str) else target[0]
        question = text_of(doc["input"])
        item = _item(question, choices, _place(target, choices), "\n")
        found.append((one.place, {"id": one.id} | item))
    return found


def _place(target: str, choices: Sequence[str]) -> int | str:
    """Return which choice a letter or a text is; the text itself if there are no choices."""
    if target in choices:
        return choices.index(target)
    letter = ord(target.upper()) - ord("A") if len(target) == 1 else -1
    return letter if 0 <= letter < len(choices) else target


def _by_number(logged: Sequence[LogRecord]) -> list[LogRecord]:
    """Return each record once, in the stored order."""
    once: dict[int, LogRecord] = {}
    for one in logged:
        if one.number is None:
            raise InputError(f"{one.place}: the record has no number; give the data set itself")
        once.setdefault(one.number, one)
    return [once[number] for number in sorted(once)]


READERS: dict[str, Callable[[Path], list[Record]]] = {
    "lm-eval-samples": _samples,
    "inspect": _inspect,
    "lighteval": _details,
}
