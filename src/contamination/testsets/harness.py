"""What evaluation harnesses have, as test sets: their tasks and their logs.

- `lm-eval:TASK`: a task of lm-evaluation-harness, by its name or its .yaml file.
- `lm-eval-samples:FILE`: `samples_*.jsonl`, which it writes with `--log_samples`.
- `inspect:FILE`: an `.eval` log of Inspect.
- `lighteval:FILE`: `details_*.parquet` of lighteval, since its version 0.11.

They are in the order in which the set was published. A log need not have this order: it is put back
by the numbers that the harness gave the records of the stored data set. A record has its `text`; of
a multiple-choice item also `question`, `choices` and `answer`, which the axis of options moves.
"""

from pathlib import Path

from contamination.errors import InputError
from contamination.testsets.lm_eval_tasks import read_task
from contamination.testsets.logs.read import read_log
from contamination.testsets.logs.record import LogRecord
from contamination.testsets.records import Record


def read_harness(what: str) -> tuple[str, list[Record]]:
    """Return name and records of a set that has one of the names above.

    A log has a record once for each filter, sample or epoch, which count once. Raises InputError
    for a task or a log that cannot be read, where the published order or the texts cannot be told,
    and where two different records have one number.
    """
    kind, _, rest = what.partition(":")
    if kind == "lm-eval":
        return Path(rest).stem, read_task(rest)
    once: dict[int, LogRecord] = {}
    for one in read_log(Path(rest)).records:  # what a log is, it says itself
        if one.number is None or not one.doc:
            raise InputError(
                f"{one.place}: the log does not tell this record and its published place (were "
                "named samples shuffled?); give the data set itself"
            )
<<<<<<< HEAD
        first = once.setdefault(one.number, one)
        if first.doc != one.doc:
=======
        once.setdefault(one.number, (one.place, dict(one.doc)))
    return Path(rest).stem, [once[number] for number in sorted(once)]


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

    path = Path(name).absolute()
    own = path.suffix in (".yaml", ".yml")
    try:
        from lm_eval.tasks import TaskManager

        manager = TaskManager(include_defaults=not own)
        tasks = manager.load(str(path) if own else name)["tasks"]
    except Exception as error:  # no lm-eval, datasets, the hub, YAML, Jinja: no common base class
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
        shown = item(question, options, answer, task.config.target_delimiter)
        found.append({**doc, "text": shown["text"]} if labels or not options else shown)
    return found


@dataclass(frozen=True)
class LogRecord:
    """One question to a model, and its answer.

    Attributes
    ----------
    place : where in the file, for messages.
    model : its name, from the log or the files beside it, else from the name of the file.
    id, number : what the log calls the record, and its place in the published order, from 0; "" and
        None where the log does not say.
    doc : the record: as published in logs of lm-evaluation-harness, an `item` in those of Inspect
        and lighteval, as the log has it in others.
    prompt : all that the model was shown; "" where the log does not say.
    answers : what it answered, as the log has extracted it, else all that it wrote; before the
        label of an option its text.
    """

    place: str
    model: str
    id: str
    number: int | None
    doc: Mapping[str, Any] = field(default_factory=dict, repr=False)
    prompt: str = field(default="", repr=False)
    answers: tuple[str, ...] = ()


def read_log(path: Path) -> list[LogRecord]:
    """Read a log, in its own order.

    Raises InputError that names file and record for what cannot be read, is of no known format, or
    lacks an id or an answer.
    """
    if path.suffix == ".eval":
        rows = _read_eval(path)
    elif path.name == "scenario_state.json":  # one object over many lines
        rows = [("request_states", read_json(path))]
    else:
        rows = read_records(path)
    first, found = rows[0][1] if rows else {}, list[LogRecord]()
    reader = next((each for field, each in READERS.items() if field in first), _plain)
    for place, row in rows:
        try:
            found += reader(path, f"{path}, {place}", row)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            problem = f"no {error}" if isinstance(error, KeyError) else str(error)
>>>>>>> eaf1fdf9 (Verify computes the test of options from its store alone; messages end with a sentence and name what works)
            raise InputError(
                f"{one.place}: another record than that of {first.place} has the same number, so "
                "the log is of several sets; give the data set itself"
            )
    ordered = [once[number] for number in sorted(once)]
    return Path(rest).stem, [(one.place, dict(one.doc)) for one in ordered]
