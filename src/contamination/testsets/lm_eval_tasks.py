"""Tasks of lm-evaluation-harness as test sets, in the order of the stored data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError, brief
from contamination.testsets.harness_items import item
from contamination.testsets.records import Record

MOST_TASKS = 8  # of a group, in a message
# A column that is added to those of a task.
STORED = "contamination: number in the stored data set"


def read_task(name: str) -> list[Record]:
    """Return the records of a task in the stored order of its test or validation split.

    A record is rendered by the task's own `doc_to_text`, `doc_to_choice` and
    `doc_to_target`. Its `process_docs` may leave records out or shuffle them: the
    stored order is put back. (A log of such a task counts the shuffled order; the task
    alone knows the stored one.) Where the choices are the same for all records, such as
    "A" to "D", they are labels: the options then are those of the record, whose own
    fields stay. Raises InputError for a task that cannot be opened, a group of tasks,
    one without such a split, and one that draws at random.
    """
    import datasets

    path = Path(name).absolute()
    own = path.suffix in (".yaml", ".yml")
    try:
        from lm_eval.tasks import TaskManager

        manager = TaskManager(include_defaults=not own)
        tasks = manager.load(str(path) if own else name)["tasks"]
    except Exception as error:
        # No lm-eval, datasets, the hub, YAML, Jinja: no common base class.
        reason = brief(f"{type(error).__name__}: {error}", 300)
        raise InputError(
            f"lm-eval:{name}: the task cannot be opened ({reason}); check its name, or "
            "pip install '.[harness]' in the folder of this project"
        ) from error
    if len(tasks) != 1:
        shown = ", ".join([*tasks][:MOST_TASKS])
        if len(tasks) > MOST_TASKS:
            shown += f" ... (`lm-eval ls tasks` lists all {len(tasks)})"
        raise InputError(f"lm-eval:{name} is a group; give one of its tasks: {shown}")
    (task,) = tasks.values()
    split = task.config.test_split or task.config.validation_split
    if split is None:
        raise InputError(
            f"lm-eval:{name} has neither a test nor a validation split; give another",
        )
    datasets.disable_caching()  # what was drawn at random would be drawn once
    try:
        first = _rendered(task, _in_stored_order(task, split))
        again = _rendered(task, _in_stored_order(task, split))
    finally:
        datasets.enable_caching()
    if first != again:
        raise InputError(
            f"lm-eval:{name}: process_docs draws at random what a record shows, so "
            "nobody knows which text was published; give the data set itself"
        )
    return [(f"document {number}", record) for number, record in enumerate(first)]


def _in_stored_order(task: Any, split: str) -> list[dict[str, Any]]:
    """Return the documents of a task, processed, in the order of the stored data set."""
    stored = task.dataset[split]
    process = task.config.process_docs
    if process is None:
        return list(stored)
    docs = list(process(stored.add_column(STORED, list(range(len(stored))))))
    if all(STORED in doc for doc in docs):
        docs.sort(key=lambda doc: doc[STORED])
        for doc in docs:
            del doc[STORED]
        return docs
    # It makes new columns alone: one document after the other keeps them in place.
    processed = list[dict[str, Any]]()
    for number in range(len(stored)):
        processed.extend(process(stored.select([number])))
    return processed


def _rendered(task: Any, docs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the record of each document as the task shows it."""
    listed = task.config.doc_to_choice is not None
    choices = [list(task.doc_to_choice(doc)) if listed else [] for doc in docs]
    labels = listed and len({*map(tuple, choices)}) == 1
    records = []
    delimiter = task.config.target_delimiter
    for doc, options in zip(docs, choices, strict=True):
        question = task.doc_to_text(doc)
        answer = task.doc_to_target(doc)
        if isinstance(answer, list):  # of several right answers the first
            answer = answer[0] if answer else ""
        if isinstance(question, int):  # which of several beginnings is the right one
            records.append({"text": f"{options[question]}{delimiter}{answer}"})
            continue
        if options and isinstance(answer, str) and answer in options:
            answer = options.index(answer)
        shown = item(question, options, answer, delimiter)
        if labels or not options:
            shown = {**doc, "text": shown["text"]}
        records.append(shown)
    return records
