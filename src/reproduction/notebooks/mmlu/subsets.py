"""The 57 subsets of MMLU (Hendrycks et al., ICLR 2021), the test sets of Oren, section 4.3.

The data registry knows where they come from and how long they are. Table 4 of Oren lists 56 of them
under the same names; professional_law is the one that it lacks.
"""

from dataclasses import replace

from contamination.errors import InputError
from contamination.scoring.status import FAILURES, status_of
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available, open_test_set

FAMILY = "mmlu/"  # before a subset's name in the registry
NOT_WANTED = (
    "not run here: this profile measures nothing on MMLU; use PROFILE=benchmarks, or set "
    "notebooks.04_mmlu_fisher.measured in the profile"
)


def subset_names() -> list[str]:
    """Name the subsets, in the order of Table 4; professional_law comes last."""
    return [name.removeprefix(FAMILY) for name in registered(FAMILY)]


def title(subset: str) -> str:
    """Write the name of a subset for running text: "High School US History"."""
    special = {"us": "US", "and": "and"}
    return " ".join(special.get(word, word.capitalize()) for word in subset.split("_"))


def subsets_at_hand(
    max_records: int, *, wanted: bool
) -> tuple[dict[str, ExampleSet], dict[str, str]]:
    """Open every subset by its name, at most `max_records` records of each, or say why not.

    Returns the subsets, and for the name of every other one a line that starts with "not run here"
    (it was not `wanted`, or needs a network and there is none) or with "failed" (its file is not
    what the registry says). After one that is out of reach no other is asked for. Raises InputError
    for fewer than two records.
    """
    if max_records < 2:
        raise InputError(f"max_records is {max_records}: give at least two records of each subset")
    names = subset_names()
    if not wanted:
        return {}, dict.fromkeys(names, NOT_WANTED)
    sets: dict[str, ExampleSet] = {}
    problems: dict[str, str] = {}
    unreachable = ""
    for name in names:
        try:
            if unreachable and not available(FAMILY + name):
                problems[name] = unreachable
            else:
                opened = open_test_set(FAMILY + name, max_records=max_records)
                sets[name] = replace(opened, name=name)
        except FAILURES as error:
            problems[name] = status_of(error)
            if problems[name].startswith("not run"):
                unreachable = problems[name] = f"{problems[name]} (data/README.md)"
    return sets, problems
