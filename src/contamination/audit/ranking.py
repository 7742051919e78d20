"""Statistics compared on stores of models of which the truth is known.

Oren et al. offer their models as a benchmark for future tests (section 1), to be ranked by the mean
of log p (section 4.1). The stores of such models are enough: every registered statistic is computed
from them without a model, and so is one of your own (docs/how-to/own-statistic.md). A folder of
stores holds

    <model>/<set>/<kind>-<shards>/

and `stores.json`, which says how often the contaminated model has read each set.
"""

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError
from scipy import stats

from contamination.audit.registry import TESTS, Test
from contamination.audit.shard_scores import StoreScores
from contamination.errors import InputError
from contamination.files import read_json
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Kind
from contamination.testsets.inside import is_inner_name

CONTAMINATED = "contaminated"
CLEAN = "clean"
FACTS = "stores.json"
COLUMNS = ("test", "model", "dataset", "dup_count", "p", "log10_p", "status")
OK = "ok"
# A statistic does not keep its level if an exact one would reject this number of clean sets or
# more with a smaller probability than this.
CHANCE = 0.001


class _Planted(BaseModel):
    """What is known of a set."""

    dup_count: int


class _Facts(BaseModel):
    """What is known of the sets of a folder of stores, by their names."""

    canaries: dict[str, _Planted]


def score_statistics(
    stores: Path, own: Sequence[Test] = (), alpha: float = 0.05
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute every statistic on every set of both models, and rank the statistics.

    Parameters
    ----------
    stores
        Folder of stores, as `data/stores`.
    own
        Further statistics, as of `own_statistic`.
    alpha
        Level at which rejections are counted.

    Returns
    -------
    ranking : a row per statistic, the most powerful first: sets that it could be computed on,
        mean_log10_p and rejected of them under the contaminated model, false_positives of the
        clean_sets under the clean one, and keeps_level. Statistics of fewer sets, which need
        tokens that a store of sums lacks, come later: their means are of other sets. Last come
        those that reject too many clean sets to keep their level. A statistic without a p-value
        under one of the two models has no row.
    results : `COLUMNS`, a row per statistic, model and set; a status says why there is no p-value.

    Raises
    ------
    InputError
        If the folder does not say which sets were read, or no statistic can be computed under
        one of the two models.
    """
    dup_counts = _dup_counts(stores)
    rows = []
    for test in [*_registered(), *own]:
        for model in (CONTAMINATED, CLEAN):
            for dataset, dup_count in dup_counts.items():
                row: dict[str, object] = {"test": test.name, "model": model, "dataset": dataset}
                row["dup_count"] = dup_count if model == CONTAMINATED else 0
                rows.append(row | _result(test, stores / model / dataset))
    results = pd.DataFrame(rows, columns=list(COLUMNS))
    return _ranking(results, alpha), results


def _dup_counts(stores: Path) -> dict[str, int]:
    """Return how often the contaminated model has read each set, as a folder of stores says.

    Raises InputError if it does not say so, or names a set that is none of its folders.
    """
    path = stores / FACTS
    try:
        facts = _Facts.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {field}: {first['msg']}; take the original") from error
    for name in facts.canaries:
        if not is_inner_name(name):
            raise InputError(f"{path}: {name!r} leads out of {stores}; take the original")
    return {name: planted.dup_count for name, planted in facts.canaries.items()}


def _registered() -> list[Test]:
    """Return the registered statistics of the order of records."""
    return [test for test in TESTS.values() if test.kind != "alternatives"]


def _result(test: Test, folder: Path) -> dict[str, object]:
    """Return p and log10 p of a statistic on a set, or the reason why it has none."""
    try:
        store = _store_of(test, folder)
        result = test.result(store, store.permutations())
    except InputError as error:
        return {"p": np.nan, "log10_p": np.nan, "status": f"not computed: {error}"}
    return {"p": result.p, "log10_p": result.log10_p, "status": OK}


def _store_of(test: Test, folder: Path) -> Store:
    """Return the store of a set that a statistic reads: whole, or cut into the most shards."""
    paths = sorted(folder.glob(f"{test.kind}-*"))
    stores = [open_store(path) for path in paths]
    whole_set = test.shard_size is None
    fitting = [store for store in stores if (store.header.shards == 1) == whole_set]
    if not fitting:
        raise InputError(f"{folder}: no store of {test.kind} for {test.name}; score one first")
    return max(fitting, key=lambda store: store.header.shards)


def _ranking(results: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Sum up the results of each statistic."""
    computed = results[results["status"] == OK]
    for model in (CONTAMINATED, CLEAN):
        if model not in set(computed["model"]):
            reason = results.loc[results["model"] == model, "status"].iloc[0]
            raise InputError(f"no statistic has a p-value under the model {model!r}: {reason}")
    computed = computed.assign(rejects=computed["p"] <= alpha)
    of_contaminated = computed[computed["model"] == CONTAMINATED].groupby("test", sort=False)
    of_clean = computed[computed["model"] == CLEAN].groupby("test", sort=False)
    ranking = pd.DataFrame(
        {
            "sets": of_contaminated.size(),
            "mean_log10_p": of_contaminated["log10_p"].mean(),
            "rejected": of_contaminated["rejects"].sum(),
            "clean_sets": of_clean.size(),
            "false_positives": of_clean["rejects"].sum(),
        }
    ).dropna()
    counts = ["sets", "rejected", "clean_sets", "false_positives"]
    ranking = ranking.astype(dict.fromkeys(counts, int))
    chance = stats.binom.sf(ranking["false_positives"] - 1, ranking["clean_sets"], alpha)
    ranking["keeps_level"] = chance > CHANCE
    order = ["keeps_level", "sets", "mean_log10_p"]
    ranking = ranking.sort_values(order, ascending=[False, False, True])
    return ranking.rename_axis("test").reset_index()


def own_statistic(name: str, kind: Kind = "orderings") -> Test:
    """Load a statistic of one's own, FILE.py:FUNCTION, judged by the exact test on shards.

    The function takes a store, the number of a shard and the number of permutations, and returns
    the scores of the orderings of that shard, (n + 1,), the canonical one first. If it treats all
    orderings alike, the p-value is exact, whatever it computes.

    Parameters
    ----------
    name
        Path of a Python file and a function in it. The code of the file is run.
    kind
        Of the stores that it reads: "orderings", or "successors" for pairs of examples.

    Raises
    ------
    InputError
        If there is no such file or function, or the file cannot be imported.
    """
    path, _, function_name = name.rpartition(":")
    file = Path(path)
    spec = spec_from_file_location("own_statistic", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise InputError(f"{name!r}: no such Python file; give FILE.py:FUNCTION")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # somebody else's code, which may raise anything
        raise InputError(f"{file}: it cannot be imported ({error!r}); correct it") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"{file}: it has no function {function_name!r}; give FILE.py:FUNCTION")
    return Test(
        name=function_name,
        label=function_name,
        colour="#000000",
        marker="x",
        help="a statistic of your own",
        kind=kind,
        from_store=_checked(name, function),
    )


def _checked(name: str, function: StoreScores) -> StoreScores:
    """Return the function, with a check that it returns finite scores, one per ordering."""

    def scores(store: Store, shard: int, permutations: int) -> np.ndarray:
        try:
            values = np.asarray(function(store, shard, permutations), dtype=np.float64)
        except Exception as error:  # somebody else's code, which may raise anything
            raise InputError(f"{name}: shard {shard}: {error!r}; correct the function") from error
        if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
            raise InputError(
                f"{name}: shard {shard} has scores of shape {values.shape}; return a finite score "
                "for each ordering, the canonical one first"
            )
        return values

    return scores
