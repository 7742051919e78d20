"""`contamination plan`: how many shards a wanted power takes, from a pilot of a few."""

import math
from pathlib import Path
from typing import Annotated

import typer

from contamination.audit.battery import DEFAULT_TESTS
from contamination.cli.options import ScoringOptions, add_options
from contamination.cli.printing import print_table, say
from contamination.scoring.models import label


@add_options
def plan(
    options: ScoringOptions,
    test: Annotated[str, typer.Option(help="Test to plan for.")] = DEFAULT_TESTS[0],
    pilot: Annotated[
        int, typer.Option(help="Shards to score for the pilot.", min=1, metavar="N")
    ] = 5,
    alpha: Annotated[float, typer.Option(help="Level of the planned test.")] = 0.05,
    power: Annotated[float, typer.Option(help="Wanted chance of p <= alpha.")] = 0.8,
    seed: Annotated[
        int, typer.Option(help="Seed of the shuffled orderings.", min=0, metavar="N")
    ] = 0,
    store: Annotated[Path, typer.Option(help="Where log-probabilities are kept.")] = Path(
        "contamination-stores"
    ),
) -> None:
    """Score a pilot of a few shards, and estimate how many a wanted power takes."""
    examples = options.load(options.dataset)

    from contamination.audit.pilot import plan_from_pilot

    planned = plan_from_pilot(
        options.open(options.model),
        examples,
        test=test,
        shards=pilot,
        alpha=alpha,
        power=power,
        seed=seed,
        directory=store,
        name=label(options.model),
    )
    say(
        f"pilot of {planned.pilot_shards} shards, {test} test: effect {planned.effect:.2f} sd "
        f"(95% interval {planned.effect_low:.2f} to {planned.effect_high:.2f})"
    )
    print_table(
        ("orderings per shard", "shards", "95% interval", "tokens", "95% interval"),
        (
            (
                design.permutations,
                _number(design.shards),
                f"{_number(design.shards_low)} to {_number(design.shards_high)}",
                _number(design.tokens),
                f"{_number(design.tokens_low)} to {_number(design.tokens_high)}",
            )
            for design in planned.designs
        ),
        title=f"For p <= {planned.alpha:g} with probability {planned.power:g}",
    )
    say(*planned.notes)


def _number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "no number"
