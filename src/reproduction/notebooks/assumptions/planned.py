"""What the passes of notebook 08 over released models will read, before they are made."""

from collections.abc import Iterator, Sequence

from contamination.scoring.cost import sequence_workload
from contamination.scoring.forecast import Forecast, Pass
from contamination.scoring.models import find_model
from reproduction.notebooks.assumptions.public import OTHER_DOMAINS, SETS


def planned(
    forecast: Forecast, *, models: Sequence[str], public: str, length: int, texts: int
) -> Iterator[Pass]:
    """Yield a pass for each model and domain: `texts` members and non-members of `length` tokens.

    Models that have read other domains than those of the Pile have nothing to score. How many
    documents are long enough is known when they are here, so all of it is an estimate.
    """
    for entry in map(find_model, models):
        if entry.id not in OTHER_DOMAINS:
            context = forecast.facts(entry).context
            for domain in SETS[public].domains:
                work = sequence_workload([length] * texts, 2, context)
                yield Pass(entry, domain, work, False)
