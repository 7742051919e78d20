"""Text like the planted test sets that was never planted: what a heuristic is tuned on.

It is of the same kind as the set. Text of another kind would be no yardstick, since a threshold
would then tell kinds of text apart. Docstrings are drawn on from where the canary sets stopped, so
that none is in both; of a file, it is the records that no set holds.
"""

import math
from collections.abc import Mapping

from contamination.errors import InputError
from contamination.pretraining.canaries import KINDS, build_canaries
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.profile import CanarySpec
from contamination.randomness import random_stream
from contamination.testsets.example_set import load_test_set, make_test_set
from contamination.testsets.sources import data_file

SPARE = 1.15  # more records than the mean length asks for, since lengths vary


def tuning_texts(
    experiment: Experiment, *, tokens: int, files: Mapping[str, str] | None = None
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Find text for every canary set of the profile.

    Returns (sources, texts): canary set -> name of its source (a kind, or a file and its template),
    and source -> texts with their separators, shuffled, none twice. Raises InputError if a set in
    `files` is not made from a file, there are too few docstrings, the canary sets are not those of
    the installed packages, or a file cannot be read.

    Parameters
    ----------
    tokens : about how many are wanted of each kind of docstrings; files are taken whole.
    files : canary set -> file of the data directory, instead of the set's own file.
    """
    specs, files = experiment.profile.canaries, files or {}
    if unknown := sorted(set(files) - {spec.name for spec in specs if spec.file}):
        raise InputError(f"{unknown[0]!r} is no canary set that is made from a file; take it out")
    planted = {text for spec in specs for text in experiment.test_set(spec.name).examples}
    texts = _docstrings(experiment, tokens)
    sources = {}
    for spec in specs:
        if spec.kind:
            sources[spec.name] = spec.kind
        else:
            file = files.get(spec.name, str(spec.file))
            sources[spec.name] = source = f"{file} as {spec.template}"
            texts[source] = _left_over(file, str(spec.template), planted, experiment.profile.seed)
    return sources, texts


def _docstrings(experiment: Experiment, tokens: int) -> dict[str, tuple[str, ...]]:
    """Draw the sets again with the same numbers, and more records after them, by kind."""
    profile, facts = experiment.profile, experiment.corpus_facts["canaries"]
    planted = [spec for spec in profile.canaries if spec.kind]
    more = []
    for kind in dict.fromkeys(str(spec.kind) for spec in planted):
        sets = [facts[spec.name] for spec in planted if spec.kind == kind]
        per_token = sum(one["examples"] for one in sets) / sum(one["tokens"] for one in sets)
        examples = math.ceil(SPARE * tokens * per_token)
        more.append(CanarySpec(f"never planted, of kind {kind}", examples, 0, kind=kind))
    made = build_canaries(
        list(profile.corpus.held_out),
        [*planted, *more],
        seed=profile.seed,  # as in the corpus stage
    )
    for spec in planted:
        if tuple(made[spec.name]) != experiment.test_set(spec.name).records:
            raise InputError(
                f"{experiment.corpus}: canary set {spec.name} is not what the installed packages "
                "give, so other text could hold parts of it: make the corpus again"
            )
    texts = {}
    for spec in more:
        kind = str(spec.kind)
        records = [(f"record {i}", record) for i, record in enumerate(made[spec.name])]
        texts[kind] = make_test_set(kind, records, KINDS[kind].template, spec.name).examples
    return texts


def _left_over(file: str, template: str, planted: set[str], seed: int) -> tuple[str, ...]:
    """Return the examples of a file that no canary set holds, shuffled."""
    found = load_test_set(data_file(file), template).examples
    left = [text for text in dict.fromkeys(found) if text not in planted]
    order = random_stream(seed, "left over", file, template).permutation(len(left))
    return tuple(left[i] for i in order)
