"""The 57 subsets of MMLU (Hendrycks et al., ICLR 2021), the test sets of Oren, section 4.3.

The data registry knows where they come from and how long they are. Table 4 of Oren lists 56 of them
under the same names; professional_law is the one that it lacks.
"""

from dataclasses import replace

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available, open_test_set

FAMILY = "mmlu/"  # before a subset's name in the registry


def subset_names() -> list[str]:
    """Name the subsets, in the order of Table 4; professional_law comes last."""
    return [name.removeprefix(FAMILY) for name in registered(FAMILY)]


def title(subset: str) -> str:
    """Write the name of a subset for running text: "High School US History"."""
    special = {"us": "US", "and": "and"}
    return " ".join(special.get(word, word.capitalize()) for word in subset.split("_"))


def subsets_at_hand(max_records: int, *, wanted: bool) -> tuple[dict[str, ExampleSet], str]:
    """Open every subset by its name, at most `max_records` records of each, or say why not.

    The reason is empty, or one line that starts with "not run here" and says how to have them: they
    were not `wanted`, or some need a network and there is none. Raises InputError for fewer than
    two records, and as `contamination.testsets.sources.open_test_set` if the files are here but not
    right.
    """
    if max_records < 2:
        raise InputError(f"max_records is {max_records}: give at least two records of each subset")
    if not wanted:
        return {}, (
            "not run here: this profile measures nothing on MMLU; use PROFILE=benchmarks, or set "
            "notebooks.04_mmlu_fisher.measured in the profile"
        )
    try:
        return {
            name: replace(open_test_set(FAMILY + name, max_records=max_records), name=name)
            for name in subset_names()
        }, ""
    except InputError as error:
        if all(available(name) for name in registered(FAMILY)):
            raise
        return {}, f"not run here: {error} (data/README.md)"
