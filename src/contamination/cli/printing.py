"""What the command line prints for people."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from contamination.audit.diagnostics import Diagnosis
    from contamination.audit.plan import ScoringPlan
    from contamination.audit.sequential import Stopped
    from contamination.audit.verdict import Audit
    from contamination.statistics import PowerPlan, TestResult


def print_audit(found: "Audit", adjusted: Iterable[float], alpha: float) -> None:
    """Print the p-values, also after Holm's correction, what the order gives away, and the cost."""
    table = Table(title=f"Has {found.model} seen {found.dataset} in this order?")
    for column in ("test", "shards", "permutations", "p", "log10 p", "p (Holm)"):
        table.add_column(column, justify="left" if column == "test" else "right")
    for result, holm_p in zip(found.results, adjusted, strict=True):
        table.add_row(
            result.test,
            str(result.shards),
            str(result.permutations),
            f"{result.p:.3g}",
            f"{result.log10_p:.1f}",
            f"{holm_p:.3g}",
        )
    console = Console()
    console.print(table, highlight=False)
    for result in found.results:
        if best := getattr(result, "best", None):
            console.print(f"{result.test}: the smallest p was that of {best}", highlight=False)
    controls: dict[TestResult, list[str]] = {}
    for result, control in zip(found.results, found.control, strict=True):
        controls.setdefault(control, []).append(result.test)
    _print_order(console, found.diagnosis, controls, alpha)
    print_cost(found)


def _print_order(
    console: Console,
    diagnosis: "Diagnosis",
    controls: "Mapping[TestResult, Sequence[str]]",
    alpha: float,
) -> None:
    """Print what the order of the records gives away without a model; controls by their tests."""
    console.print(f"order of the records: {diagnosis.verdict}", highlight=False)
    for reason in diagnosis.reasons:
        console.print(f"  {reason}", highlight=False)
    for control, tests in controls.items():
        beside = f" ({', '.join(tests)})" if len(controls) > 1 else ""
        console.print(
            f"a compressor, which has seen nothing{beside}: p = {control.p:.3g}", highlight=False
        )
        if control.p <= alpha:
            console.print(
                "  the order carries information by itself: a small p of the model is no evidence",
                highlight=False,
            )


def print_cost(found: "Audit") -> None:
    """Print what was scored, how fast, and where it lies."""
    Console().print(_cost_line(found), highlight=False)


def print_plan(plan: "ScoringPlan", as_json: bool) -> None:
    """Print how much there is to score."""
    if as_json:
        print(json.dumps(asdict(plan), indent=2))
        return
    table = Table(title="What there is to score", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    rows = {
        "examples": f"{plan.examples:,}",
        "shards": ", ".join(dict.fromkeys(str(store.shards) for store in plan.stores)),
        "permutations": f"{plan.permutations:,}",
        "sequences": f"{plan.work.sequences:,}",
        "forward passes or requests": f"{plan.work.windows:,}",
        "tokens scored": f"{plan.work.scored:,}",
        "tokens read": f"{plan.work.read:,}",
        "tokens stored already": f"{plan.work.scored - plan.missing:,}",
    }
    if plan.flops is not None:
        rows["FLOPs"] = f"{plan.flops:.2g}"
    if plan.seconds is not None:
        rows["time, about"] = _duration(plan.seconds)
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table, highlight=False)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cost_line(found: "Audit") -> str:
    where = ", ".join(str(path) for path in found.stores)
    if found.tokens_scored == 0:
        return f"everything was stored already: {where}"
    rate = found.tokens_scored / found.seconds
    predicted = found.plan.seconds
    told = f" (predicted {_duration(predicted)})" if predicted is not None else ""
    return (
        f"{found.tokens_scored:,} tokens in {_duration(found.seconds)}{told}, "
        f"{rate:,.0f} tokens/s; log-probabilities in {where}"
    )


def print_stopped(found: "Stopped", test: str, *, as_json: bool) -> None:
    """Print the anytime-valid p-value, and after how many shards it was reached."""
    result = found.result
    if as_json:
        told = {
            "test": test,
            "p": result.p,
            "log10_p": result.log10_p,
            "alpha": result.alpha,
            "shards": result.shards,
            "stopped_at": result.stopped_at,
            "diagnosis": {
                "verdict": found.diagnosis.verdict,
                "reasons": list(found.diagnosis.reasons),
            },
            "control": {"p": found.control.p, "log10_p": found.control.log10_p},
        }
        print(json.dumps(told, indent=2))
        return
    ended = "stopped" if result.stopped_at is not None else "not enough evidence"
    console = Console()
    console.print(
        f"{test} test, anytime-valid p = {result.p:.3g}: {ended} after {result.shards} shards",
        highlight=False,
    )
    _print_order(console, found.diagnosis, {found.control: [test]}, result.alpha)


def print_power_plan(found: "PowerPlan", test: str) -> None:
    """Print what a pilot says about the effect, and what the wanted power takes."""
    console = Console()
    console.print(
        f"pilot of {found.pilot_shards} shards, {test} test: effect {found.effect:.2f} sd "
        f"(95% interval {found.effect_low:.2f} to {found.effect_high:.2f})",
        highlight=False,
    )
    table = Table(title=f"For p <= {found.alpha:g} with probability {found.power:g}")
    for column in ("orderings per shard", "shards", "95% interval", "tokens", "95% interval"):
        table.add_column(column, justify="right")
    for design in found.designs:
        table.add_row(
            f"{design.permutations:,}",
            _number(design.shards),
            f"{_number(design.shards_low)} to {_number(design.shards_high)}",
            _number(design.tokens),
            f"{_number(design.tokens_low)} to {_number(design.tokens_high)}",
        )
    console.print(table, highlight=False)
    for note in found.notes:
        console.print(note, highlight=False)


def _number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "no number"
