"""Text like the planted test sets that was never planted: what a heuristic is tuned on.

It is of the same kind as the set. Text of another kind would be no yardstick, since a threshold
would then tell kinds of text apart. Docstrings are what is left after a shuffle of which the canary
sets are the first records, so which of them were planted is chance. Of a file, they are the records
that no set holds; a set takes the first, so they are like it where the order of the file means
nothing.
"""

import math
from collections.abc import Mapping

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.example_set import load_test_set, make_test_set
from contamination.testsets.sources import data_file
from reproduction.run.canaries import KINDS, build_canaries
from reproduction.run.experiment import Experiment

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
    """Draw the sets again with the same numbers; return what they leave, by kind."""
    packages, facts = list(experiment.profile.corpus.held_out), experiment.corpus_facts["canaries"]
    planted = [spec for spec in experiment.profile.canaries if spec.kind]
    sets, left = build_canaries(packages, planted, seed=experiment.profile.seed)
    for spec in planted:
        if tuple(sets[spec.name]) != experiment.test_set(spec.name).records:
            raise InputError(
                f"{experiment.corpus}: canary set {spec.name} is not what the installed packages "
                "give, so other text could hold parts of it: make the corpus again"
            )
    texts = {}
    for kind, records in left.items():
        known = [facts[spec.name] for spec in planted if spec.kind == kind]
        per_token = sum(one["examples"] for one in known) / sum(one["tokens"] for one in known)
        wanted, name = math.ceil(SPARE * tokens * per_token), f"never planted, of kind {kind}"
        if len(records) < wanted:
            raise InputError(
                f"{name}: only {len(records)} records are left in {', '.join(packages)}, {wanted} "
                "wanted; ask for fewer, lower `examples` or add a held-out package"
            )
        numbered = [(f"record {i}", record) for i, record in enumerate(records[:wanted])]
        texts[kind] = make_test_set(kind, numbered, KINDS[kind].template, name).examples
    return texts


def _left_over(file: str, template: str, planted: set[str], seed: int) -> tuple[str, ...]:
    """Return the examples of a file that no canary set holds, shuffled."""
    found = load_test_set(data_file(file), template).examples
    left = [text for text in dict.fromkeys(found) if text not in planted]
    order = random_stream(seed, "left over", file, template).permutation(len(left))
    return tuple(left[i] for i in order)
