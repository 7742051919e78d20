"""What the passes of notebook 06 will read, estimated before they are made."""

from collections.abc import Iterator, Mapping, Sequence

from contamination.membership.dated_pages import ORIGINAL, PARAPHRASED, split_name
from contamination.scoring.cost import sequence_workload
from contamination.scoring.forecast import TOKENS_PER_WORD, Forecast, Pass, estimated
from contamination.scoring.models import find_model
from reproduction.notebooks.wikimia.benchmark import PARAPHRASED_LENGTHS, RECORDS

LONGEST_RECORDS = 82  # of 256 words, which the card of the hub leaves out
OWN_PASSES = 2  # the text, and the text in lower case


def planned(
    forecast: Forecast,
    *,
    models: Sequence[str],
    references: Mapping[str, str],
    lengths: Sequence[int],
    neighbours: int,
) -> Iterator[Pass]:
    """Yield a pass for each model and split, and one of its reference.

    A model reads each text as it is, in lower case, and `neighbours` times changed; its reference
    reads it once. Texts have so many words, and their tokens are estimated.
    """
    splits = [(ORIGINAL, length) for length in lengths]
    splits += [(PARAPHRASED, length) for length in lengths if length in PARAPHRASED_LENGTHS]
    for model in models:
        readers = [(model, OWN_PASSES + neighbours)]
        readers += [(references[model], 1)] if model in references else []
        for name, times in readers:
            entry = find_model(name)
            context = forecast.facts(entry).context
            for variant, length in splits:
                texts = estimated(RECORDS.get(length, LONGEST_RECORDS), length * TOKENS_PER_WORD)
                work = sequence_workload(texts.tokens, times, context)
                yield Pass(entry, split_name(length, variant), work, False)
