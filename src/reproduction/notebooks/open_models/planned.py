"""What the passes of notebook 03 will read, counted or estimated before they are made."""

from collections.abc import Iterator, Sequence

from contamination.audit.request import Request
from contamination.audit.verdict import choose_store
from contamination.scoring.forecast import Forecast, Pass
from contamination.scoring.models import find_model


def planned(
    forecast: Forecast,
    *,
    models: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
) -> Iterator[Pass]:
    """Yield a pass for each model, set and store that the tests read; they share stores."""
    request = Request(tests, permutations=permutations)
    for entry in map(find_model, models):
        context = forecast.facts(entry).context
        for name in sets:
            found = forecast.lengths(entry, name, max_records)
            stores = [choose_store(test, found.tokens, context, request) for test in tests]
            for store in dict.fromkeys(stores):
                work = store.work(found.tokens, permutations, context)
                yield Pass(entry, f"{name}, {store.kind}", work, found.exact)
