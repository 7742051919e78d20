"""The subsets of MMLU: their names, and what a run says that cannot have them."""

import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import lookup
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu import subsets as mmlu
from reproduction.notebooks.mmlu.subsets import FAMILY, subset_names, subsets_at_hand, title
from reproduction.output.published import load_published


@pytest.fixture
def registry_of(monkeypatch):
    """Return a function that puts a made-up world in the place of the registered sets."""

    def stand_in(missing=(), damaged=()) -> list[tuple[str, int]]:
        opened = []

        def open_test_set(name, *, max_records):
            opened.append((name, max_records))
            if name in missing:
                raise InputError(f"{name}: fetch it with `some command`") from ConnectionError(
                    "no way out"
                )
            if name in damaged:
                raise InputError(f"{name}: another checksum")
            examples = tuple(f"{name} {i}\n" for i in range(max_records))
            return ExampleSet(name, examples, "text/1", f"revision of {name}")

        monkeypatch.setattr(mmlu, "open_test_set", open_test_set)
        monkeypatch.setattr(mmlu, "available", lambda name: name not in missing)
        return opened

    return stand_in


def test_names_and_sizes_are_those_of_table_4_and_professional_law() -> None:
    table4 = load_published(ROOT / "data" / "published", "oren2024_table4_mmlu")
    names = subset_names()
    assert names == [*table4["subset"], "professional_law"]
    assert len(names) == 57
    sizes = {name: lookup(FAMILY + name).records for name in table4["subset"]}
    assert sizes == dict(zip(table4["subset"], table4["size"], strict=True))


def test_titles() -> None:
    assert title("high_school_us_history") == "High School US History"
    assert title("us_foreign_policy") == "US Foreign Policy"
    assert title("high_school_government_and_politics") == "High School Government and Politics"


def test_subsets_are_opened_in_order_under_their_own_names(registry_of) -> None:
    opened = registry_of()
    sets, problems = subsets_at_hand(7, wanted=True)
    assert problems == {}
    assert list(sets) == [found.name for found in sets.values()] == subset_names()
    assert opened == [(f"mmlu/{name}", 7) for name in subset_names()]
    assert {len(found.examples) for found in sets.values()} == {7}
    assert sets["virology"].revision == "revision of mmlu/virology"


def test_what_is_not_wanted_is_not_opened(registry_of) -> None:
    opened = registry_of(missing=("mmlu/anatomy",))
    sets, problems = subsets_at_hand(7, wanted=False)
    assert (sets, opened) == ({}, [])
    assert list(problems) == subset_names()
    (reason,) = set(problems.values())
    assert reason.startswith("not run here: this profile measures nothing")
    assert "PROFILE=benchmarks" in reason
    assert "\n" not in reason


def test_without_a_network_the_hub_is_asked_once_and_the_reason_says_what_to_do(
    registry_of,
) -> None:
    opened = registry_of(missing=("mmlu/anatomy", "mmlu/virology"))
    sets, problems = subsets_at_hand(7, wanted=True)
    reason = "not run here: mmlu/anatomy: fetch it with `some command` (data/README.md)"
    assert problems == {"anatomy": reason, "virology": reason}
    assert len(sets) == 55
    assert ("mmlu/virology", 7) not in opened


def test_a_file_that_is_wrong_is_left_out_and_the_others_are_read(registry_of) -> None:
    registry_of(damaged=("mmlu/anatomy",))
    sets, problems = subsets_at_hand(7, wanted=True)
    assert problems == {"anatomy": "failed: mmlu/anatomy: another checksum"}
    assert len(sets) == 56


@pytest.mark.parametrize("wanted", [True, False])
def test_a_single_record_has_no_order(wanted: bool, registry_of) -> None:
    registry_of(missing=("mmlu/anatomy",))
    with pytest.raises(InputError, match="max_records is 1: give at least two records"):
        subsets_at_hand(1, wanted=wanted)
