"""The output of commands for people: p-values, cost, plans, the verdict."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contamination.audit.export import format_of
from contamination.audit.registry import ITEM_TESTS, TESTS
from contamination.cli.choices import TextChoice
from contamination.cli.ending import ExitStatus
from contamination.cli.printing import print_power, print_table, say
from contamination.files import write_text

if TYPE_CHECKING:
    from contamination.audit.decision import Verdict
    from contamination.audit.plan import ScoringPlan
    from contamination.audit.request import Request
    from contamination.audit.result import Audit
    from contamination.audit.sides_plan import SidesPlan


def show_result(
    audit: "Audit",
    alpha: float,
    *,
    output: Sequence[Path],
    as_json: bool,
    lines: Sequence[str] = (),
    stated: Mapping[str, Any] | None = None,
) -> ExitStatus:
    """Write a result to files, print it, and return the status of its verdict.

    `lines` come before the result for people, and the fields that are `stated` after it
    in JSON.
    """
    result = audit.as_dict(alpha)
    result.update(stated or {})
    for path in output:
        write_text(path, format_of(path)(result))
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        say(*lines)
        print_audit(audit, alpha)
        if stated is None:  # a seal states its tests, and says itself what was not tested
            _print_other_axes(audit, alpha)
    return ExitStatus(result["verdict"]["status"])


def print_audit(audit: "Audit", alpha: float) -> None:
    """Print the p-values, also after Holm's correction, their controls, and the cost."""
    header = audit.header
    of_items = [result.test in ITEM_TESTS for result in audit.results]
    counted = "shards or items" if any(of_items) else "shards"
    rows = []
    for result, holm_p in zip(audit.results, audit.holm_p, strict=True):
        shards: object = result.shards
        if result.test in ITEM_TESTS:
            shards = f"{result.shards:,} of {audit.plan.examples:,}"
        row = (
            result.test,
            shards,
            result.permutations,
            f"{result.p:.3g}",
            f"{result.log10_p:.1f}",
            f"{holm_p:.3g}",
        )
        rows.append(row)
    asked = f" {_order_asked(of_items)}"
    if audit.held_out is not None:
        asked = ""  # in any order
    print_table(
        ("test", counted, "permutations", "p", "log10 p", "p (Holm)"),
        rows,
        title=f"Has {header.model} seen {header.dataset}{asked}?",
    )
    say(*audit.notes())
    print_cost(audit)
    if audit.control is not None:
        print_cost(audit.control)
    verdict = audit.verdict(alpha)
    print_power(verdict.power)
    say_verdict(verdict, alpha)


def say_verdict(verdict: "Verdict", alpha: float) -> None:
    """Print a verdict, and the option for a control model if one could change it."""
    say(f"verdict at {alpha:g}: {verdict}")
    if "control model" in verdict.reason:
        say("name a control model by --control")


def _print_other_axes(audit: "Audit", alpha: float) -> None:
    """Print, where an order shows nothing, by which tests that were not made a set may be found."""
    of_items = [result.test in ITEM_TESTS for result in audit.results]
    if audit.verdict(alpha).conclusion != "no evidence" or all(of_items):
        return
    advice = (
        "a set that was shuffled, or read record by record, shows nothing in the order of its "
        "records. If records were held back, use `contamination compare`"
    )
    if not any(of_items):
        advice += "; if the items have options, use `--axis options`"
    say(f"{advice}.")


def _order_asked(of_items: Sequence[bool]) -> str:
    """Return which order the title of the result asks about."""
    if all(of_items):
        return "with its options in this order"
    if any(of_items):
        return "with its records and options in this order"
    return "in this order"


def print_cost(audit: "Audit") -> None:
    """Print what was scored, how fast and where, and the noise of an endpoint."""
    if audit.generation is not None:
        texts = [audit.generation]
        if "options" in audit.generation:
            texts.append(audit.generation["options"])
        for of_store, store in zip(texts, audit.stores, strict=True):
            _print_generation_cost(of_store, str(store))
        return
    where = ", ".join(str(path) for path in audit.stores)
    if audit.tokens_scored == 0:
        say(f"everything was stored already: {where}")
    else:
        time = duration(audit.seconds)
        predicted = predicted_duration(audit.plan)
        if predicted and audit.held_out is None:  # which no plan of an audit counts
            time += f" (predicted {predicted})"
        rate = audit.tokens_scored / audit.seconds
        say(
            f"{audit.tokens_scored:,} tokens in {time}, {rate:,.0f} tokens/s; "
            f"log-probabilities in {where}"
        )
    if audit.noise is not None:
        say(f"answers to one prompt differed by up to {audit.noise:.2g} nats a token")
    if audit.step is not None:
        say(
            f"the server rounds log-probabilities to multiples of {audit.step:g} nats, which hides "
            "small preferences: a large p says less than the power tells"
        )


def _print_generation_cost(texts: Mapping[str, Any], where: str) -> None:
    """Print how many texts a model wrote, and how many of them are of no use."""
    how = f"{texts['tokens']} tokens at temperature {texts['temperature']:g}"
    if texts["served"]:
        how += f" by {texts['served']!r}"
    lost = (
        f"{texts['empty']:,} refused or empty, {texts['unusable']:,} of no use, "
        f"{texts['repeated']:,} the same"
    )
    say(f"{texts['texts']:,} texts of {how}: {lost}; in {where}")
    if texts["left_out"]:
        say(f"the server refuses, and was not sent: {', '.join(texts['left_out'])}")


class PlannedWork(NamedTuple):
    """What there is to score or to write, and the request that is planned."""

    plan: "ScoringPlan"
    request: "Request"


def print_plans(
    planned: Mapping[str, PlannedWork],
    *,
    sides: "SidesPlan | None" = None,
    as_json: bool,
) -> None:
    """Print how much there is to score under the model and, after it, under a control.

    `sides` is the plan of the comparison with records that were held back, if there is
    one.
    """
    if as_json:
        first, *controls = planned.values()
        described = asdict(first.plan)
        if controls:
            described["control_model"] = asdict(controls[0].plan)
        if sides is not None:
            described["held_out"] = asdict(sides)
        print(json.dumps(described, indent=2))
        return
    for name, work in planned.items():
        title = "What there is to score"
        if len(planned) > 1:
            title += f" under {name}"
        print_table(("", ""), _to_score(work.plan, work.request).items(), title=title)
    if sides is not None:
        print_table(("", ""), _to_compare(sides).items(), title="And each record of both sides")


def print_generation_plans(
    planned: Mapping[str, PlannedWork], text: TextChoice, *, as_json: bool
) -> None:
    """Print how much each model is to write, and what that costs by the prices in `text`."""
    rows = {name: _to_write(work.plan, text) for name, work in planned.items()}
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for name, counts in rows.items():
        print_table(("", ""), counts.items(), title=f"What {name} is to write")


def _to_score(plan: "ScoringPlan", request: "Request") -> dict[str, object]:
    """Return the rows of a plan of scoring."""
    shards = []
    for store in plan.stores:
        unit = " items" if store.kind == "alternatives" else ""
        shards.append(f"{store.shards}{unit}")
    rows: dict[str, object] = {
        "examples": plan.examples,
        "shards": _listed(shards),
        "permutations": _listed(_permutations(plan, request)),
        "sequences": plan.work.sequences,
        "forward passes or requests": plan.work.windows,
        "tokens scored": plan.work.scored,
        "tokens read": plan.work.read,
        "tokens stored already": plan.work.scored - plan.missing,
    }
    return rows | _predicted(plan)


def _to_compare(sides: "SidesPlan") -> dict[str, object]:
    """Return the rows of the plan of a comparison."""
    rows: dict[str, object] = {
        "published records": sides.published,
        "records held back": sides.held_out,
        "forward passes or requests": sides.work.windows,
        "tokens read": sides.work.read,
        "tokens stored already": sides.work.scored - sides.missing,
    }
    return rows | _predicted(sides)


def _predicted(plan: "ScoringPlan | SidesPlan") -> dict[str, object]:
    """Return the rows of what scoring will take; of a model elsewhere there are none."""
    rows: dict[str, object] = {}
    if plan.flops is not None:
        rows["FLOPs"] = f"{plan.flops:.2g}"
    predicted = predicted_duration(plan)
    if predicted:
        if plan.measured is not None:
            predicted += f" (from the run of {plan.measured})"
        rows["time, about"] = predicted
    return rows


def _permutations(plan: "ScoringPlan", request: "Request") -> list[str]:
    """Return the permutations that the result of each test will name."""
    of_orders = [store for store in plan.stores if store.kind != "alternatives"]
    counts = []
    for name, store in zip(request.order_tests, of_orders, strict=False):  # none of options alone
        counts.append(TESTS[name].orderings(store.shards, request.permutations))
    if len(of_orders) < len(plan.stores):
        counts.append(request.arrangements - 1)
    return [f"{count:,}" for count in counts]


def _listed(names: Iterable[str]) -> str:
    """Return names in a line, each once."""
    return ", ".join(dict.fromkeys(names))


def _to_write(plan: "ScoringPlan", text: TextChoice) -> dict[str, object]:
    """Return requests, tokens and money of what is not stored yet."""
    left = plan.missing / plan.work.scored
    read = round(plan.work.read * left)
    rows: dict[str, object] = {
        "requests": round(plan.work.windows * left),
        "requests, of one text each": round(plan.work.sequences * left),
        "tokens in, about": read,
        "tokens out, at most": plan.missing,
    }
    if text.price_in is not None or text.price_out is not None:
        price = read * (text.price_in or 0) + plan.missing * (text.price_out or 0)
        rows["price, about"] = float(f"{price / 1e6:.4g}")
    return rows


def duration(seconds: float) -> str:
    """Return a time for people, in seconds, minutes or hours."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def predicted_duration(plan: "ScoringPlan | SidesPlan") -> str:
    """Return the range of the time that a plan predicts, "" if it predicts none."""
    if plan.least_seconds is None or plan.most_seconds is None:
        return ""
    return duration_range(plan.least_seconds, plan.most_seconds)


def duration_range(least: float, most: float) -> str:
    """Return a range of times for people, to two digits, in the unit of the longer one.

    >>> duration_range(41.7, 93.8)
    '42 to 94 s'
    >>> duration_range(90.0, 241.0)
    '1.5 to 4 min'
    """
    unit = "s"
    of_unit = 1
    if most >= 120:
        unit = "min"
        of_unit = 60
    if most >= 7200:
        unit = "h"
        of_unit = 3600
    return f"{_two_digits(least / of_unit)} to {_two_digits(most / of_unit)} {unit}"


def _two_digits(number: float) -> str:
    """Return a number to two significant digits, without an exponent."""
    return f"{float(f'{number:.2g}'):g}"
