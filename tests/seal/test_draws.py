"""The algorithm of a seal: done again by a stranger, uniform over all variants of a set."""

import hashlib
import hmac
import json
from collections import Counter

import pytest
import scipy.stats

from contamination.seal.draws import Variants, commitment, draw, seed_of
from contamination.testsets.options import items_of
from fakes.items import items_set

SECRET = bytes(range(32))
LETTERS = "ABCD"


def item(number: int, options: str = "wxyz", answer: int = 0) -> dict[str, object]:
    return {"question": f"Q{number}?", "choices": list(options), "answer": LETTERS[answer]}


def variants(record: dict, free=(), wordings=()) -> Variants:
    several = {"options": ("", tuple(free))} if free else {}
    several |= {"wordings": ("question", tuple(wordings))} if wordings else {}
    return Variants(record, several, items_of(items_set([record])))


def drawn(given: list[Variants], seed: bytes) -> list[dict]:
    return [each.record for each in draw(given, seed)]


def seeds(count: int):
    return (hashlib.sha256(str(i).encode()).digest() for i in range(count))


class Draws:
    """The page's section "The algorithm", in a stranger's hand."""

    def __init__(self, seed: bytes, name: str) -> None:
        self.seed = seed
        self.name = name.encode()
        self.words = []
        self.block = 0

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


def again(records: list[dict], free: list[int], seed: bytes) -> list[dict]:
    """Published records of items whose wordings are in their field `wordings`."""
    published = []
    for number in Draws(seed, "contamination-seal/2/order").shuffle(range(len(records))):
        record = records[number]
        texts = list(record["choices"])
        gold = record["choices"][LETTERS.index(record["answer"])]
        drawn = Draws(seed, f"contamination-seal/2/options/{number}").shuffle(free)
        for place, source in zip(free, drawn, strict=True):
            texts[place] = record["choices"][source]
        pick = Draws(seed, f"contamination-seal/2/wording/{number}").below(len(record["wordings"]))
        published.append(
            {
                "question": record["wordings"][pick],
                "choices": texts,
                "answer": LETTERS[texts.index(gold)],
            }
        )
    return published


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("signature", [None, "b5ff"])
def test_a_stranger_who_reads_the_page_gets_the_same_set_and_commitment(signature):
    records = [
        item(i, options="wé4z", answer=i % 4) | {"wordings": [f"Q{i}?", f"Is it {i}?", f"{i}, eh?"]}
        for i in range(20)
    ]
    given = []
    for record in records:
        published = dict(record)
        wordings = published.pop("wordings")
        given.append(variants(published, (0, 1, 3), wordings))
    public = bytes.fromhex(signature or "")
    seed = hmac.new(SECRET, b"contamination-seal/2/seed\0" + public, hashlib.sha256).digest()
    assert seed_of(SECRET, signature) == seed
    assert drawn(given, seed) == again(records, [0, 1, 3], seed)
    stated = {"date": "2026-01-31", "é": [1, 2.5, None, True]}
    digests = [hashlib.sha256(compact(x).encode()).digest() for x in (records, stated)]
    message = b"contamination-seal/2/commitment\0" + SECRET + b"".join(digests)
    assert commitment(SECRET, records, stated) == hashlib.sha256(message).hexdigest()


def test_a_set_that_was_sealed_once_is_the_same_in_every_version():
    given = [variants(item(i, answer=i % 4), range(4)) for i in range(12)]
    text = compact(drawn(given, SECRET))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "1fcac1d0eb2e941c"


def test_every_variant_of_a_set_is_as_likely_as_any_other():
    """3! orders of the records, 3! of the options of one that may move, 2 wordings: 72 cells."""
    given = [
        variants(item(0), (0, 1, 3), ["Q0?", "Q?"]),
        variants(item(1)),
        variants(item(2)),
    ]
    found = Counter(compact(drawn(given, seed)) for seed in seeds(72 * 100))
    assert len(found) == 72
    assert scipy.stats.chisquare(list(found.values())).pvalue > 1e-4
