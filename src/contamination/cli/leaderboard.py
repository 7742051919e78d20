"""`contamination leaderboard`: which statistic finds most on stores of known truth."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from contamination.cli import options as o
from contamination.cli.ending import ExitStatus
from contamination.cli.options import option
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.errors import InputError


def leaderboard(
    stores: Annotated[
        Path, typer.Argument(help="Folder of stores of known truth, such as data/stores.")
    ],
    own: Annotated[
        list[str] | None,
        option(
            "Statistic of your own, FILE.py:FUNCTION, whose code is run; may be repeated.",
            "--own",
            group=o.WHAT,
        ),
    ] = None,
    kind: Annotated[
        Literal["orderings", "successors"],
        option("Kind of stores that your own statistics read.", "--kind", group=o.WHAT),
    ] = "orderings",
    alpha: o.Alpha = 0.05,
    as_json: o.AsJson = False,
    csv: o.CsvFile = None,
) -> ExitStatus:
    """Rank the statistics by their mean log10 p on STORES.

    Example: contamination leaderboard data/stores --own my_statistic.py:scores

    STORES are those of models that have read planted sets, and of a clean one. No model is
    read. The clean model has read none of the sets, so about a share of the level of
    its sets is rejected by a statistic that keeps it. Exit status 2: a statistic of your own gives
    no p-value at all under one of the models.
    """
    if kind != "orderings" and not own:
        raise InputError("--kind goes with --own: give both, or leave it out")

    from contamination.audit.ranking import own_statistic, score_statistics

    statistics = [own_statistic(name, kind) for name in own or ()]
    ranking, results = score_statistics(stores, statistics, alpha)
    save_table(results, csv)
    missing = _not_computed(results)
    failed = {name for name, _ in missing} & {test.name for test in statistics}
    status = ExitStatus.FAILED if failed else ExitStatus.DONE
    if as_json:
        output = {"ranking": json_rows(ranking), "results": json_rows(results)}
        print(json.dumps(output, indent=2))
        return status
    rows: list[tuple[Any, ...]] = []
    for row in ranking.itertuples():
        mean = f"{row.mean_log10_p:.2f}"
        rows.append((row.test, row.sets, mean, row.rejected, row.false_positives))
    columns = ("test", "sets", "mean log10 p", "rejected", "rejected, clean model")
    print_table(columns, rows, title=f"Statistics on {stores}, at level {alpha:g}")
    say("Smaller is more evidence. Means over fewer sets are of other sets: compare equal numbers.")
    for name in ranking.loc[~ranking["keeps_level"], "test"]:
        say(
            f"{name}: it rejects too many sets of the clean model, so its p-values are not valid; "
            "treat the published ordering as all others"
        )
    for name, reason in missing:
        say(f"{name}: {reason}")
    if csv is not None:
        say(f"every p-value: {csv}")
    return status


def _not_computed(results: Any) -> list[tuple[str, str]]:
    """Return the statistics without any p-value under a model, each with the first reason."""
    missing = dict[str, str]()
    for (name, _), of_model in results.groupby(["test", "model"], sort=False):
        if of_model["p"].isna().all():
            missing.setdefault(name, of_model["status"].iloc[0])
    return list(missing.items())
