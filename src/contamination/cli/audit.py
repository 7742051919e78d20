"""`contamination test`, `audit`, `score`: p-values, what stands beside them, the cost."""

import datetime
import fnmatch
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contamination.audit.decision import exit_status
from contamination.audit.export import format_of
from contamination.audit.registry import ITEM_TESTS
from contamination.audit.request import CHOICES
from contamination.cli.ending import ExitStatus
from contamination.cli.options import (
    AuditOptions,
    CsvFile,
    TestedOptions,
    TestOptions,
    add_options,
    option,
    template_of,
)
from contamination.cli.printing import print_power, print_table, save_table, say
from contamination.errors import InputError
from contamination.files import check_directory, is_path, write_text
from contamination.testsets.registry import registered

if TYPE_CHECKING:
    from contamination.audit.generation import GenerationAudit
    from contamination.audit.plan import ScoringPlan, Work
    from contamination.audit.result import Audit


@add_options
def test(
    options: TestedOptions,
    alpha: Annotated[float, option("Level of the verdict.", min=0, max=1)] = 0.05,
    control: Annotated[
        str | None,
        option(
            "A model that cannot have read DATASET and takes the same tests: if its p is small, "
            "too, that of MODEL is no evidence.",
            metavar="MODEL",
        ),
    ] = None,
    stop: Annotated[
        bool, option("Score shard by shard until --alpha is reached.", "--stop")
    ] = False,
    seal: Annotated[
        Path | None, option("The seal.json of a sealed set, to test all of it.")
    ] = None,
    key: Annotated[Path | None, option("The author's key.json, which proves --seal.")] = None,
) -> ExitStatus:
    """Test whether MODEL has seen DATASET in its published order: a p-value.

    Small p: the model prefers the published order, and chance is not a plausible reason. Exit
    status 0: no evidence. 1: evidence, since p is at most --alpha after Holm's correction over the
    tests asked for, and neither the order itself nor a control explains it; proven, if p is at
    most 0.001 as well. 3: the order is no evidence here, or nothing can be said.
    """
    if seal is not None or key is not None:
        if stop or control is not None:
            raise InputError("--stop and --control: all that --seal names is tested; leave them")
        from contamination.cli.seal import test_sealed

        return test_sealed(options, seal, key, alpha)
    if stop and (control is not None or options.dry_run or options.access == "generate"):
        others = "--control, --dry-run and --access generate"
        raise InputError(f"--stop scores as many shards as it takes: leave out {others}")
    audit = _run(options, control, alpha=alpha, stop=stop)
    if audit is None:
        return ExitStatus.DONE
    return show_result(audit, alpha, options)


def show_result(
    audit: "Audit", alpha: float, options: TestedOptions, *lines: str, **stated: Any
) -> ExitStatus:
    """Write a result to the files that were asked for, print it; return the status of its verdict.

    The lines stand before it where it is printed for people, and what is stated after it in JSON.
    """
    result = audit.as_dict(alpha) | stated
    for path in options.output or ():
        write_text(path, format_of(path)(result))
    if options.as_json:
        print(json.dumps(result, indent=2))
    else:
        say(*lines)
        print_audit(audit, alpha)
    return ExitStatus(result["verdict"]["status"])


@add_options
def score(options: AuditOptions) -> None:
    """Score DATASET under MODEL into the stores that the tests need, without testing."""
    audit = _run(options)
    if audit is None:
        return
    if options.as_json:
        untested = ("schema", "alpha", "verdict", "results")
        described = {k: each for k, each in audit.as_dict().items() if k not in untested}
        print(json.dumps(described, indent=2))
    else:
        print_cost(audit)


def _run(
    options: AuditOptions, control: str | None = None, *, alpha: float = 0.05, stop: bool = False
) -> "Audit | None":
    """Test a model and its control, if one is named; `run` says when there is no audit.

    With `stop`, shard by shard until the evidence rejects at the level alpha.
    """
    if stop:
        _ = options.stopping_test
    requests, examples, given = options.prepare(control)
    if isinstance(options, TestedOptions) and options.access == "generate":
        from contamination.audit.generation import GenerationAudit, audit_generation

        written = options.written

        def writings(by: Any, request: AuditOptions) -> list[GenerationAudit]:
            arrange = None
            if given is not None:  # as it was checked, from the secret of the quiz
                four = replace(request, arrangements=CHOICES)
                arrange = partial(four.alternatives, examples, template=given.template)
            return [GenerationAudit(by, examples, request, arrange=arrange, **written)]

        return run(requests, writings, partial(audit_generation, alpha=alpha))

    from contamination.audit.plan import Work
    from contamination.audit.run import run_audit

    variants = [given] if given else None

    def works(by: Any, request: AuditOptions) -> list[Work]:
        return [Work(by, examples, request, variants=variants, timed=not stop)]

    def audit(work: Work) -> "Audit":
        return run_audit(
            work.scorer,
            work.test_set,
            work.request,
            variants=variants,
            stop_at=alpha if stop else None,
        )

    return run(requests, works, audit)


def run(
    requests: Sequence[AuditOptions],
    works_of: Callable[[Any, AuditOptions], "Sequence[Work | GenerationAudit]"],
    audit: "Callable[..., Audit]",
) -> "Audit | None":
    """Open what is asked for, the model and then a control, and audit the works of each.

    None after a dry run, which prints their plans, and in every process but the first, which alone
    has texts written.
    """
    from contamination.scoring.processes import processes

    options, first_process = requests[0], processes().is_main_process
    opened: list[tuple[AuditOptions, Any]] = []
    for request in requests if first_process or options.access == "logprobs" else ():
        model: Any = request.open(request.model)
        if any(model.revision == before.revision for _, before in opened):
            one = f"--control {request.model} has the weights of MODEL"
            raise InputError(f"{one}: name another model")
        opened.append((request, model))
    found: list[Audit] = []
    plans: dict[str, ScoringPlan] = {}
    while opened:  # the weights of one are released before those of the next are loaded
        request, model = opened.pop(0)
        works = works_of(model, request)
        if options.dry_run:
            for work in works:
                axis = f" ({work.request.axis})" * (len(works) > 1)
                plans[f"{request.model}{axis}"] = work.plan
            continue
        found.append(audit(*works))
        if options.endpoint is not None:
            print(model.client.summary(), file=sys.stderr)
    if not first_process:
        return None
    if options.dry_run:
        print_plans(plans, options)
        return None
    if len(found) == 1:
        return found[0]
    from contamination.audit.run import with_control

    return with_control(*found)


def print_audit(audit: "Audit", alpha: float) -> None:
    """Print the p-values, also after Holm's correction, what the order gives away, and the cost."""
    options = any(result.test in ITEM_TESTS for result in audit.results)
    rows = []
    for result, holm_p in zip(audit.results, audit.holm_p, strict=True):
        of = f"{result.shards:,} of {audit.plan.examples:,}"
        shards = of if result.test in ITEM_TESTS else result.shards
        numbers = (f"{result.p:.3g}", f"{result.log10_p:.1f}", f"{holm_p:.3g}")
        rows.append((result.test, shards, str(result.permutations), *numbers))
    print_table(
        ("test", f"shards{' or items' * options}", "permutations", "p", "log10 p", "p (Holm)"),
        rows,
        title=f"Has {audit.header.model} seen {audit.header.dataset} {_order_asked(audit)}?",
    )
    say(*audit.notes())
    for each in filter(None, (audit, audit.control)):
        print_cost(each)
    verdict = audit.verdict(alpha)
    print_power(verdict.power)
    say(f"verdict at {alpha:g}: {verdict}")
    if "control model" in verdict.reason:  # there is none, and one could change the verdict
        say("name a control model by --control")


def _order_asked(audit: "Audit") -> str:
    """Return which order the title of the result asks about."""
    of_items = [result.test in ITEM_TESTS for result in audit.results]
    if all(of_items):
        return "with its options in this order"
    if any(of_items):
        return "with its records and options in this order"
    return "in this order"


def print_cost(audit: "Audit") -> None:
    """Print what was scored, how fast and where, and how much answers of an endpoint differed."""
    where = ", ".join(str(path) for path in audit.stores)
    if (wrote := audit.generation) is not None:
        served = f" by {wrote['served']!r}" if wrote["served"] else ""
        how = f"{wrote['tokens']} tokens at temperature {wrote['temperature']:g}{served}"
        lost = f"{wrote['empty']:,} refused or empty, {wrote['unusable']:,} of no use"
        lost += f", {wrote['repeated']:,} the same"
        say(f"{wrote['texts']:,} texts of {how}: {lost}; in {where}")
        if wrote["left_out"]:
            say(f"the server refuses, and was not sent: {', '.join(wrote['left_out'])}")
        return
    if audit.tokens_scored == 0:
        say(f"everything was stored already: {where}")
    else:
        predicted = audit.plan.seconds
        about = f" (predicted {_duration(predicted)})" if predicted is not None else ""
        say(
            f"{audit.tokens_scored:,} tokens in {_duration(audit.seconds)}{about}, "
            f"{audit.tokens_scored / audit.seconds:,.0f} tokens/s; log-probabilities in {where}"
        )
    if audit.noise is not None:
        say(f"answers to one prompt differed by up to {audit.noise:.2g} nats a token")
    return


def print_plans(plans: "Mapping[str, ScoringPlan]", options: AuditOptions) -> None:
    """Print how much there is to score, or to write, under the model and under a control."""
    if isinstance(options, TestedOptions) and options.access == "generate":
        rows = {name: _to_write(plan, options) for name, plan in plans.items()}
        told, title = rows, "What {} is to write"
    else:
        rows = {name: _to_score(plan) for name, plan in plans.items()}
        told, *control = map(asdict, plans.values())
        told |= {"control_model": control[0]} if control else {}
        title = f"What there is to score{' under {}' * len(control)}"
    if options.as_json:
        return print(json.dumps(told, indent=2))
    for name, each in rows.items():
        print_table(("", ""), each.items(), title=title.format(name))
    return None


def _to_score(plan: "ScoringPlan") -> dict[str, object]:
    shards = (f"{one.shards}{' items' * (one.kind == 'alternatives')}" for one in plan.stores)
    rows: dict[str, object] = {
        "examples": plan.examples,
        "shards": ", ".join(dict.fromkeys(shards)),
        "permutations": plan.permutations,
        "sequences": plan.work.sequences,
        "forward passes or requests": plan.work.windows,
        "tokens scored": plan.work.scored,
        "tokens read": plan.work.read,
        "tokens stored already": plan.work.scored - plan.missing,
    }
    if plan.flops is not None:
        rows["FLOPs"] = f"{plan.flops:.2g}"
    if plan.seconds is not None:
        rows["time, about"] = _duration(plan.seconds)
    return rows


def _to_write(plan: "ScoringPlan", options: TestedOptions) -> dict[str, object]:
    """Requests, tokens and money of what is not stored yet."""
    left = plan.missing / plan.work.scored
    read = round(plan.work.read * left)
    rows: dict[str, object] = {
        "requests": round(plan.work.windows * left),
        "requests, of one text each": round(plan.work.sequences * left),
        "tokens in, about": read,
        "tokens out, at most": plan.missing,
    }
    if options.price_in is not None or options.price_out is not None:
        price = read * (options.price_in or 0) + plan.missing * (options.price_out or 0)
        rows["price, about"] = float(f"{price / 1e6:.4g}")
    return rows


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- many models, many sets -----------------------------------------------------------------------


@add_options
def audit(
    options: TestOptions,
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET...",
            help="Test sets, as DATASET of `test`; 'mmlu/*' stands for all registered names that "
            "fit, and SET=TEMPLATE gives one its own template.",
        ),
    ],
    models: Annotated[list[str], option("Model, as in `test`; may be repeated.", "--model")],
    alpha: Annotated[float, option("Level of the verdicts.", min=0, max=1)] = 0.05,
    csv: CsvFile = None,
    html: Annotated[Path | None, option("HTML page of the table, which sorts.")] = None,
) -> ExitStatus:
    """Test every model on every set, with Holm's correction over all of it.

    Exit status 1 if anything is proven or evidence, else 3 if something cannot be said or audited,
    else 0.
    """
    check_directory(options.directory)
    named: dict[str, str | None] = {}
    for name, template in (one for each in sets for one in _sets_of(each)):
        if template and (named.get(name) or template) != template:
            raise InputError(f"{name} has two templates: give each its command and --store")
        named[name] = template or named.get(name)

    from contamination.audit.many import audit_pairs, judged_rows
    from contamination.scoring.processes import processes

    opened = {
        name: partial(replace(options, template=template or options.template).load, name)
        for name, template in named.items()
    }
    pairs = [*audit_pairs(models, opened, options, options.open)]
    if not processes().is_main_process:
        return ExitStatus.DONE
    rows = judged_rows(pairs, alpha=alpha)
    save_table(rows, csv)
    if html is not None:
        from contamination.audit.leaderboard import leaderboard

        write_text(html, leaderboard(rows, date=datetime.datetime.now(datetime.UTC).date()))
    if options.as_json:
        print(json.dumps(rows, indent=2))
    else:
        shown = ["model", "set", "test", "p", "p (Holm)", "order", "compressor", "verdict"]
        title = f"What has {rows[0]['model']} seen?" if len(models) == 1 else None
        for name in ("model", "test"):
            if len({row[name] for row in rows} - {None}) < 2:
                shown.remove(name)
        cells = ([_short(row[name]) for name in shown] for row in rows)
        print_table(shown, cells, title=title, text={"set", "test", "order", "verdict"})
        told = (
            row["reason"]
            if row["p"] is None
            else f"{row['model']} on {row['set']}: {row['verdict']}: {row['reason']}"
            for row in rows
            if row["verdict"] != "no evidence" or row["objections"]
        )
        say(*dict.fromkeys(told))
        counted = {(row["model"], row["set"]): row["other tests"] for row in rows}
        for (model, name), others in counted.items():
            if others:
                say(f"{model} on {name}: p (Holm) leaves out other tests in --store: {others}")
    return ExitStatus(exit_status(row["verdict"] for row in rows))


def _sets_of(typed: str) -> list[tuple[str, str | None]]:
    """Return the names of sets, and the template of each if one was given.

    A path may hold an equal sign or a star: the first name that is there ends before the template.
    """
    ends = [place for place, letter in enumerate(typed) if letter == "="]
    names = [typed, *(typed[:end] for end in ends)]
    name = next((each for each in names if is_path(each)), None)
    if name is not None:
        template = template_of(typed[len(name) + 1 :])
        return [(name, template or None)]
    name, given, template = typed.partition("=")
    found = fnmatch.filter(registered(), name) if "*" in name else [name]
    if not found:
        raise InputError(f"{name}: no registered set fits; see `contamination data list`")
    return [(each, template_of(template) if given else None) for each in found]


def _short(cell: object) -> str:
    return "" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell)
