"""The algorithm of a seal: done again by a stranger, uniform, and blind to the author's order."""

import hashlib
import hmac
import itertools
import json
import math
from collections import Counter

import pytest
import scipy.stats

from contamination.errors import InputError
from contamination.testsets.seal import (
    Entry,
    arrange,
    canonical_json,
    commitment,
    content_of,
    duplicates,
    entry_of,
)

SEED = bytes(range(32))
LETTERS = "ABCD"


def item(number: int, options: str = "wxyz", answer: int = 0) -> dict[str, object]:
    return {"question": f"Q{number}?", "choices": list(options), "answer": LETTERS[answer]}


def seeds(count: int):
    return (hashlib.sha256(str(i).encode()).digest() for i in range(count))


# --- again, from docs/how-to/seal-a-benchmark.md --------------------------------------------------


class Draws:
    """The page's section "The algorithm", in a stranger's hand."""

    def __init__(self, seed: bytes, name: str) -> None:
        self.seed, self.name, self.words, self.block = seed, name.encode(), [], 0

    def word(self) -> int:
        if not self.words:
            block = hmac.new(
                self.seed, self.name + b"\0" + self.block.to_bytes(8, "big"), hashlib.sha256
            ).digest()
            self.words = [int.from_bytes(block[i : i + 8], "big") for i in (0, 8, 16, 24)]
            self.block += 1
        return self.words.pop(0)

    def below(self, n: int) -> int:
        while (word := self.word()) >= 2**64 // n * n:
            pass
        return word % n

    def shuffle(self, values: list) -> list:
        values = list(values)
        for i in reversed(range(1, len(values))):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def again(records: list[dict], fixed: int, seed: bytes) -> tuple[list[dict], bytes]:
    """Published records of items whose place `fixed` stays, and the digest of their content.

    The wordings of an item are in its field `wordings`.
    """
    entries = []
    for record in records:
        gold = record["choices"][LETTERS.index(record["answer"])]
        rest = sorted(text for place, text in enumerate(record["choices"]) if place != fixed)
        choices = [*rest[:fixed], record["choices"][fixed], *rest[fixed:]]
        asked = {"question": "", "choices": choices, "answer": LETTERS[choices.index(gold)]}
        free = [place for place in range(len(choices)) if place != fixed]
        wordings = sorted(record["wordings"])
        entries.append(compact({"free": free, "record": asked, "wordings": wordings}))
    entries.sort(key=str.encode)
    published = []
    for number in Draws(seed, "contamination-seal/1/order").shuffle(range(len(entries))):
        entry = json.loads(entries[number])
        record, free = entry["record"], entry["free"]
        gold, old = LETTERS.index(record["answer"]), record["choices"]
        texts = list(old)
        drawn = Draws(seed, f"contamination-seal/1/options/{number}").shuffle(free)
        for place, source in zip(free, drawn, strict=True):
            texts[place] = old[source]
        pick = Draws(seed, f"contamination-seal/1/wording/{number}").below(len(entry["wordings"]))
        published.append(
            {
                "question": entry["wordings"][pick],
                "choices": texts,
                "answer": LETTERS[texts.index(old[gold])],
            }
        )
    return published, hashlib.sha256("".join(f"{line}\n" for line in entries).encode()).digest()


def test_a_stranger_who_reads_the_page_gets_the_same_set_and_commitment():
    records = [
        item(i, options="wé4z", answer=i % 4) | {"wordings": [f"Q{i}?", f"Is it {i}?", f"{i}, eh?"]}
        for i in range(20)
    ]
    entries = [
        entry_of(
            {name: value for name, value in record.items() if name != "wordings"},
            free=(0, 1, 3),
            field="question",
            wordings=record["wordings"],
        )
        for record in records
    ]
    content, facts = content_of(entries), {"date": "2026-01-31", "é": [1, 2.5, None, True]}
    published, digest = again(records, 2, SEED)
    assert [one.record for one in arrange(content, SEED, "question")] == published
    message = b"contamination-seal/1/commitment\0" + SEED + digest
    message += hashlib.sha256(compact(facts).encode()).digest()
    assert commitment(SEED, content, facts) == hashlib.sha256(message).hexdigest()


def test_a_set_that_was_sealed_once_is_the_same_in_every_version():
    content = content_of([entry_of(item(i, answer=i % 4), free=range(4)) for i in range(12)])
    text = compact([one.record for one in arrange(content, SEED)])
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "9e01eb705e69b4a45d013612ef0664972f888e5d97354f20eedde7d943ec9f5a"
    )
    assert commitment(SEED, content, {"version": 1}) == (
        "3bce4b738946935d3f463fbed343c83442ac7125103cfced74b3642737c2970b"
    )


# --- the law --------------------------------------------------------------------------------------


def test_the_published_set_does_not_depend_on_how_the_file_was_arranged():
    """Otherwise the author's order would be in it."""
    from contamination.testsets.options import rearranged

    records = [item(i, answer=i % 4) for i in range(6)]
    expected = arrange(content_of([entry_of(r, free=(0, 1, 2, 3)) for r in records]), SEED)
    for number, order in enumerate(itertools.permutations(range(4))):
        other = [rearranged(record, order) for record in records]
        rotated = other[number % 6 :] + other[: number % 6]
        found = arrange(content_of([entry_of(r, free=(0, 1, 2, 3)) for r in rotated]), SEED)
        assert [one.record for one in found] == [one.record for one in expected]


def test_every_arrangement_of_a_set_is_as_likely_as_any_other():
    """3! orders of the records, 3! of the options of one that may move, 2 wordings: 72 cells."""
    content = content_of(
        [
            entry_of(item(0), free=(0, 1, 3), field="question", wordings=["Q0?", "Q?"]),
            entry_of(item(1)),
            entry_of(item(2)),
        ]
    )
    found = Counter(
        compact([one.record for one in arrange(content, seed, "question")])
        for seed in seeds(72 * 100)
    )
    assert len(found) == 72
    assert scipy.stats.chisquare(list(found.values())).pvalue > 1e-4


def test_items_are_arranged_independently_of_each_other():
    content = content_of([entry_of(item(i, options="ab"), free=(0, 1)) for i in range(4)])
    found = Counter()
    for seed in seeds(3200):
        drawn = sorted(arrange(content, seed), key=lambda one: one.entry)
        found[tuple(one.record["choices"][0] for one in drawn)] += 1
    assert len(found) == 2**4
    assert scipy.stats.chisquare(list(found.values())).pvalue > 1e-4


@pytest.mark.parametrize("free", [(), (1,), (0, 2), (0, 1, 3), (0, 1, 2, 3)])
def test_options_that_stay_stay_and_the_right_one_stays_right(free):
    entry = entry_of(item(0, answer=1), free=free)
    found = set()
    for seed in seeds(400):
        (one,) = arrange((entry,), seed)
        choices = one.record["choices"]
        assert choices[LETTERS.index(one.record["answer"])] == "x"
        assert all(choices[place] == "wxyz"[place] for place in range(4) if place not in free)
        found.add(tuple(choices))
    assert len(found) == math.factorial(len(free))


# --- what is committed to -------------------------------------------------------------------------


def test_every_part_of_a_commitment_counts():
    entries = [entry_of(item(i), free=(0, 1), field="answer", wordings=["a", "b"]) for i in (1, 2)]
    content, facts = content_of(entries), {"date": "2026-01-31", "records": 2}
    variants = [
        (SEED, content, facts),
        (SEED[:-1] + b"\0", content, facts),
        (SEED, content[:1], facts),
        (SEED, content[::-1], facts),
        (SEED, (content[0], Entry(content[1].record, (0, 2), content[1].wordings)), facts),
        (SEED, (content[0], Entry(content[1].record, (0, 1), ("a", "c"))), facts),
        (SEED, (content[0], Entry({**content[1].record, "x": ""}, (0, 1), ("a", "b"))), facts),
        (SEED, content, facts | {"date": "2026-01-30"}),
        (SEED, content, {"date": "2026-01-31"}),
    ]
    assert len({commitment(*variant) for variant in variants}) == len(variants)


def test_equal_values_are_equal_json_and_what_json_cannot_say_is_refused():
    assert canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    for value in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises(InputError, match=r"a value that JSON cannot keep \(.*\); write it as"):
            canonical_json({"field": value})


def test_duplicates_are_found_however_their_options_stand_and_whatever_their_ids_are():
    entries = [
        entry_of(record, free=range(4))
        for record in (
            item(0) | {"id": 1},
            item(1) | {"id": 2},
            item(0, options="zyxw", answer=3) | {"id": 3},
            item(0, options="zyxw", answer=0) | {"id": 4},
        )
    ]
    assert list(duplicates(entries)) == [(0, 2)]
