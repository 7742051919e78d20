"""The loop over models and sets: a cell for each, whatever happens, and one model at a time."""

import gc
import weakref

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from fakes.made_up_scorer import Breakdown
from reproduction.run.grid import grid, load_each

A = ModelEntry("a", "org/a")
B = ModelEntry("b", "org/b")


def away(message: str) -> InputError:
    error = InputError(message)
    error.__cause__ = LocalEntryNotFoundError("no connection")
    return error


def asked(entry: ModelEntry):
    """Ask for two sets of each model, one of which is unavailable."""
    return [({"set": 1}, 1), ({"set": 2}, "failed: no such file"), ({"set": 3}, 3)]


def table(models, cell, open_model, sets=asked) -> list[tuple]:
    rows = grid(models, sets, cell, open_model=open_model)
    return [(row["model"], row["set"], row.get("value"), row["status"]) for row in rows]


class Model:
    """Stands for an open model."""


def opened(entry: ModelEntry):
    return Model(), {"revision": f"of {entry.name}"}


def doubled(entry: ModelEntry, model, number: int):
    return {"value": 2 * number}


def test_a_row_for_each_model_and_set_with_what_each_says_of_it() -> None:
    lost = ("failed: no such file",)
    rows = [(1, 2, "ok"), (2, None, *lost), (3, 6, "ok")]
    of_a = [("a", *row) for row in rows]
    of_b = [("b", *row) for row in rows]
    assert table([A, B], doubled, opened) == of_a + of_b
    rows = grid([A], asked, doubled, open_model=opened)
    assert {row["revision"] for row in rows} == {"of a"}
    nothing = [({"set": 1}, "not run here: no hub")]
    found = table([A], doubled, lambda entry: pytest.fail("opened"), lambda entry: nothing)
    assert found == [("a", 1, None, "not run here: no hub")]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("gone: check  the name"), "failed: gone: check the name"),
        (away("org/far: no such model"), "not run here: org/far: no such model"),
        (MemoryError(), "failed: MemoryError: no reason given"),
    ],
)
def test_what_fails_is_named_and_the_rest_goes_on(error: Exception, status: str) -> None:
    def open_some(entry: ModelEntry):
        if entry is A:
            raise error
        return opened(entry)

    def fails(entry: ModelEntry, model, number: int):
        if entry is A and number == 1:
            raise error
        return doubled(entry, model, number)

    lost = "failed: no such file"
    found = [row[3] for row in table([A, B], doubled, open_some)]
    assert found == [status, status, status, "ok", lost, "ok"]
    found = [row[3] for row in table([A, B], fails, opened)]
    assert found == [status, lost, "ok", "ok", lost, "ok"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, Breakdown, TypeError])
def test_interrupts_and_mistakes_go_through(error: type[BaseException]) -> None:
    def fails(*_):
        raise error

    for cell, open_model in ((fails, opened), (doubled, fails)):
        with pytest.raises(error):
            grid([A], asked, cell, open_model=open_model)


def test_each_model_is_gone_before_the_next_is_opened() -> None:
    alive: list[weakref.ref] = []

    def open_one(entry: ModelEntry):
        assert [ref() for ref in alive] == [None] * len(alive)
        model, facts = opened(entry)
        model.itself = model  # networks hold on to themselves, too
        alive.append(weakref.ref(model))
        return model, facts

    def fails_once(entry: ModelEntry, model, number: int):
        if number == 1:
            raise InputError("its error must not keep the model")
        return doubled(entry, model, number)

    gc.disable()
    try:
        grid([A, B], asked, fails_once, open_model=open_one)
    finally:
        gc.enable()
    assert len(alive) == 2


def test_sets_that_cannot_be_had_are_reasons_and_the_hub_is_asked_once() -> None:
    tried: list[str] = []

    def load(name: str) -> str:
        tried.append(name)
        if name.startswith("far"):
            raise away(f"{name}: not at hand")
        if name == "damaged":
            raise InputError("damaged: another checksum")
        return name.upper().encode()

    names = ["here", "damaged", "far-1", "far-2", "near", "here"]
    at_hand = {"near", "here"}
    found = load_each(names, load, at_hand=at_hand.__contains__)
    reason = "not run here: far-1: not at hand"
    assert found == {
        "here": b"HERE",
        "damaged": "failed: damaged: another checksum",
        "far-1": reason,
        "far-2": reason,
        "near": b"NEAR",
    }
    assert tried == ["here", "damaged", "far-1", "near"]
    assert load_each(names, load)["far-2"] == "not run here: far-2: not at hand"


def test_what_another_process_cannot_open_is_lost_here_too(monkeypatch) -> None:
    elsewhere = {"b": "failed: no room"}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("contamination.scoring.processes.gather", lambda work: [work(), elsewhere])
    assert load_each("ab", str.encode) == {"a": b"a", "b": "failed: no room"}
