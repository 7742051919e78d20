"""`contamination audit`: many models on many sets, with one correction over all."""

import datetime
import fnmatch
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contamination.audit.decision import exit_status
from contamination.audit.export import format_of
from contamination.audit.request import Request
from contamination.cli import options as o
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    check_outputs,
    open_scorer,
    open_set,
    reference_of,
    template_of,
)
from contamination.cli.ending import ExitStatus
from contamination.cli.options import option
from contamination.cli.printing import print_table, save_table, say
from contamination.cli.unused import refuse_unused, refuse_unused_mirror
from contamination.errors import InputError
from contamination.files import check_directory, is_path, write_text
from contamination.scoring.models import label_control
from contamination.testsets.registry import registered

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

SHOWN = (
    "model",
    "set",
    "test",
    "p",
    "p (Holm)",
    "order",
    "compressor",
    "blind",
    "control",
    "verdict",
)
HEADINGS = {"compressor": "zlib baseline"}  # of the columns of --csv
OF_SOME = ("order", "compressor", "blind", "control")  # shown where a row has one


def audit(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET...",
            help="Test sets, as DATASET of `test`; 'mmlu/*' stands for all registered names that "
            "fit, and SET=TEMPLATE gives one its own template.",
        ),
    ],
    models: Annotated[
        list[str],
        option("Model, as in `test`; may be repeated.", "--model", group=o.WHAT),
    ],
    control: Annotated[
        str | None,
        option(
            "Model that cannot have read any set. It takes all tests, and may object.",
            group=o.WHAT,
            metavar="MODEL",
        ),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        option(
            "SET=FILE: compare SET with the records of FILE, which a random draw held back, "
            "as `compare` does; may be repeated.",
            group=o.WHAT,
            metavar="SET=FILE",
        ),
    ] = None,
    within: o.Within = None,
    paired: o.Paired = False,
    alpha: o.Alpha = 0.05,
    tests: o.Tests = None,
    shards: o.Shards = None,
    permutations: o.Permutations = 25,
    order: o.OrderOfRecords = "published",
    seed: o.Seed = 0,
    template: o.TemplateText = None,
    field: o.Field = None,
    max_records: o.MaxRecords = None,
    mirror: o.Mirror = None,
    split: o.Split = None,
    data_revision: o.DataRevision = None,
    revision: o.Revision = None,
    precision: o.PrecisionName = "auto",
    attention: o.Attention = None,
    compile: o.Compile = False,
    context: o.Context = None,
    batch_tokens: o.BatchTokens = None,
    trust_remote_code: o.TrustRemoteCode = False,
    endpoint: o.Endpoint = None,
    tokenizer: o.Tokenizer = None,
    concurrency: o.Concurrency = 8,
    max_requests: o.MaxRequests = None,
    timeout: o.Timeout = 120.0,
    api_key_env: o.ApiKeyEnv = "OPENAI_API_KEY",
    directory: o.StoreDirectory = Path("contamination-stores"),
    as_json: o.AsJson = False,
    output: Annotated[
        list[Path] | None,
        option(
            "File for the verdicts, whose name says its format: .conda.csv (CONDA's "
            "database) or .md (a model card for each); may be repeated.",
            group=o.OUTPUT,
        ),
    ] = None,
    csv: o.CsvFile = None,
    html: Annotated[
        Path | None,
        option(
            "HTML page to write the table to, with columns that sort.",
            group=o.OUTPUT,
        ),
    ] = None,
) -> ExitStatus:
    """Test every model on every set, with Holm's correction.

    Example: contamination audit set_1.jsonl set_2.jsonl --model my_model --csv audit.csv

    With --held-out a set is also compared with records that were held back, and p is corrected over
    these tests as well.

    The exit status is 1 if any verdict is proven or evidence, else 3 if something cannot be said
    or audited, else 0.
    """
    templates = _templates(sets)
    files = _held_out_files(held_out or [], templates)
    if control is not None:
        for model in models:
            label_control(control, model)  # refused before anything is read
    request = Request(
        tests=tests,
        shards=shards,
        permutations=permutations,
        order_drawn=order == "drawn",
        seed=seed,
        directory=directory,
    )
    refuse_unused(request)
    refuse_unused_mirror(mirror, templates)
    if not files and (within is not None or paired):
        flag = "--paired" if within is None else "--within"
        raise InputError(f"{flag} goes with --held-out: give both, or leave it out")
    chosen_model = ModelChoice(
        revision=revision,
        precision=precision,
        attention=attention,
        compile=compile,
        context=context,
        batch_tokens=batch_tokens,
        trust_remote_code=trust_remote_code,
        endpoint=endpoint,
        tokenizer=tokenizer,
        concurrency=concurrency,
        max_requests=max_requests,
        timeout=timeout,
        api_key_env=api_key_env,
        control=control,
        reference=reference_of(control, endpoint),
    )
    check_directory(directory)

    from contamination.audit.export_rows import FORMATS

    check_outputs(output or [], FORMATS)
    opened = {}
    opened_files = {}
    for name, own_template in templates.items():
        chosen_set = SetChoice(
            dataset=name,
            template=own_template or template,
            field=field,
            max_records=max_records,
            mirror=mirror,
            split=split,
            data_revision=data_revision,
        )
        opened[name] = partial(open_set, chosen_set)
        if name in files:
            chosen_file = replace(chosen_set, dataset=files[name])
            opened_files[name] = partial(open_set, chosen_file)

    from contamination.audit.held_out import SidesRequest
    from contamination.audit.many import audit_pairs
    from contamination.audit.rows import judged_rows
    from contamination.scoring.processes import processes

    sides = SidesRequest(within=within, paired=paired, seed=seed)
    audited = audit_pairs(
        models,
        opened,
        request,
        partial(_open_model, chosen_model),
        held_out=opened_files,
        sides=sides,
        control=control,
    )
    pairs = list(audited)
    if not processes().is_main_process:
        return ExitStatus.DONE
    rows = judged_rows(pairs, alpha=alpha)
    save_table(rows, csv)
    for path in output or []:
        write_text(path, format_of(path, FORMATS)(rows))
    if html is not None:
        from contamination.audit.page import html_page

        today = datetime.datetime.now(datetime.UTC).date()
        write_text(html, html_page(rows, date=today))
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print_rows(rows, one_model=len(models) == 1)
    return ExitStatus(exit_status(row["verdict"] for row in rows))


def _open_model(choice: ModelChoice, name: str) -> "Scorer":
    """Return the scorer of a model or of the control."""
    return open_scorer(name, choice.of_model(name))


def _templates(sets: Sequence[str]) -> dict[str, str | None]:
    """Return the template of each set that was named; None where none was typed."""
    templates = dict[str, str | None]()
    for typed in sets:
        for name, template in _sets_of(typed):
            before = templates.get(name)
            if template and before and before != template:
                raise InputError(
                    f"{name} has two templates: give each its command and --store",
                )
            templates[name] = template or before
    return templates


def _held_out_files(typed: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """Return the file of held-out records of each set that has one.

    A path may hold an equal sign: the longest name of a set counts.
    """
    files = dict[str, str]()
    for text in typed:
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            raise InputError(
                f"--held-out {text}: give SET=FILE, where SET is a set of this command",
            )
        name = max(fitting, key=len)
        if name in files:
            raise InputError(f"--held-out {text}: {name} has held-out records already")
        files[name] = text[len(name) + 1 :]
    return files


def _sets_of(typed: str) -> list[tuple[str, str | None]]:
    """Return the names of sets, and the template of each if one was given.

    A path may hold an equal sign or a star: the first name that is there ends before
    the template.
    """
    ends = [place for place, letter in enumerate(typed) if letter == "="]
    candidates = [typed, *(typed[:end] for end in ends)]
    path = next((name for name in candidates if is_path(name)), None)
    if path is not None:
        template = template_of(typed[len(path) + 1 :])
        return [(path, template or None)]
    name, equals, rest = typed.partition("=")
    template = template_of(rest) if equals else None
    names = fnmatch.filter(registered(), name) if "*" in name else [name]
    if not names:
        raise InputError(
            f"{name}: no registered set fits; see `contamination data list`",
        )
    return [(name, template) for name in names]


def _print_rows(rows: Sequence[dict[str, Any]], *, one_model: bool) -> None:
    """Print the table without columns that repeat one value, and the reasons."""
    shown = list(SHOWN)
    for name in ("model", "test"):
        values = {row[name] for row in rows if row[name] is not None}
        if len(values) < 2:
            shown.remove(name)
    for name in OF_SOME:
        if all(row[name] is None for row in rows):
            shown.remove(name)
    cells = []
    for row in rows:
        cells.append([_short(row[name]) for name in shown])
    title = f"What has {rows[0]['model']} seen?" if one_model else None
    headings = [HEADINGS.get(name, name) for name in shown]
    print_table(headings, cells, title=title, text={"set", "test", "order", "verdict"})
    reasons = []
    others = {}
    for row in rows:
        if row["other tests"]:  # which a row that failed has not
            others[row["model"], row["set"]] = row["other tests"]
        if row["p"] is None:
            reasons.append(row["reason"])
        elif row["verdict"] != "no evidence" or row["objections"]:
            reasons.append(
                f"{row['model']} on {row['set']}: {row['verdict']}: {row['reason']}",
            )
    say(*dict.fromkeys(reasons))
    if any(row["axis"] == "held out" for row in rows):
        from contamination.audit.comparison import ASSUMPTION, STATED

        say(f"held out, H0: {ASSUMPTION}; {STATED}")
    for (model, name), tests in others.items():
        say(f"{model} on {name}: p (Holm) leaves out other tests in --store: {tests}")
    if len(rows) > 1:
        from contamination.audit.rows import count_verdicts

        say(count_verdicts(rows))


def _short(cell: object) -> str:
    """Return a cell for people: numbers with three digits, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3g}"
    return str(cell)
