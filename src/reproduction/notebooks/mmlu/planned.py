"""What the passes of notebook 04 will read, counted or estimated before they are made."""

from collections.abc import Iterator, Sequence

from contamination.audit.request import Request
from contamination.audit.verdict import choose_store
from contamination.scoring.forecast import Forecast, Lengths, Pass
from contamination.scoring.models import ModelEntry, find_model
from contamination.testsets.sources import available
from reproduction.notebooks.mmlu.segmentation import SEGMENTATIONS, segmented
from reproduction.notebooks.mmlu.subsets import FAMILY, subset_names, subsets_at_hand


def planned(
    forecast: Forecast,
    *,
    measured: bool,
    models: Sequence[str],
    controls: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
) -> Iterator[Pass]:
    """Yield a pass for each model, segmentation, subset and store that the tests read.

    Where MMLU is not at hand, lines take as many tokens as records, which have more than one line
    each here and there.
    """
    names = subset_names() if measured else []
    at_hand = all(available(FAMILY + name) for name in names)
    both = segmented(subsets_at_hand(max_records, wanted=True)[0]) if measured and at_hand else {}
    request = Request(tests, permutations=permutations)

    def lengths(entry: ModelEntry, name: str, segmentation: str) -> Lengths:
        if both:
            return forecast.tokens(entry, both[segmentation][name].examples)
        return forecast.lengths(entry, FAMILY + name, max_records)

    for model in dict.fromkeys([*models, *controls]):
        entry = find_model(model)
        context = forecast.facts(entry).context
        for segmentation in SEGMENTATIONS if model in controls else ("record",):
            for name in names:
                found = lengths(entry, name, segmentation)
                stores = [choose_store(test, found.tokens, context, request) for test in tests]
                for store in dict.fromkeys(stores):
                    work = store.work(found.tokens, permutations, context)
                    what = f"{name} by {segmentation}, {store.kind}"
                    yield Pass(entry, what, work, found.exact)
