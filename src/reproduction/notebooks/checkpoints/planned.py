"""What the passes of notebook 12 will read, counted or estimated before they are made."""

from collections.abc import Iterator, Sequence

from contamination.audit.request import Request
from contamination.audit.verdict import choose_store
from contamination.errors import InputError
from contamination.scoring.cost import sequence_workload
from contamination.scoring.forecast import LINE, Forecast, Pass
from contamination.scoring.plan import StorePlan
from reproduction.notebooks.checkpoints.cells import (
    ABLATION,
    SHARDED,
    Setting,
    checkpoints,
    table_settings,
)


def planned(
    forecast: Forecast,
    *,
    models: Sequence[str],
    controls: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    shards: int,
    permutations: int,
    whole_set_permutations: int,
    max_records: int,
    ablation_sets: Sequence[str],
    ablation_shards: Sequence[int],
    min_k_sets: Sequence[str],
    validation_members: Sequence[str],
    validation_non_members: Sequence[str],
    length: int,
    spans: int,
) -> Iterator[Pass]:
    """Yield a pass for each model, set and store that the tests read, and one for its spans.

    A set that is too small for a number of shards has no pass for it: its cell will say so.
    """
    table = table_settings(
        tests,
        shards=shards,
        permutations=permutations,
        whole_set_permutations=whole_set_permutations,
    )
    ablation = [Setting(ABLATION, SHARDED, count, permutations) for count in ablation_shards]
    for checkpoint in checkpoints(models, controls):
        entry = checkpoint.entry
        context = forecast.facts(entry).context
        for name in dict.fromkeys([*sets, *ablation_sets]):
            found = forecast.lengths(entry, name, max_records, LINE)
            wanted = table if name in sets else []
            if name in ablation_sets and not checkpoint.control:
                wanted = [*wanted, *ablation]
            stores: dict[StorePlan, int] = {}
            for one in wanted:
                try:
                    request = Request(shards=one.shards)
                    store = choose_store(one.test, found.tokens, context, request)
                    stores[store] = max(stores.get(store, 0), one.permutations)
                except InputError:
                    continue
            for store, count in stores.items():
                work = store.work(found.tokens, count, context)
                yield Pass(entry, f"{name}, {store.kind}-{store.shards}", work, found.exact)
        for name in dict.fromkeys([*min_k_sets, *validation_members, *validation_non_members]):
            found = forecast.lengths(entry, name, max_records, LINE)
            count = min(spans, sum(found.tokens) // length)
            work = sequence_workload([length] * count, 1, context)
            yield Pass(entry, f"{name}, spans", work, found.exact)
