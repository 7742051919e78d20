"""Canary sets: disjoint, drawn with a seed, held out of the corpus."""

import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from contamination.errors import InputError
from reproduction.run import canaries
from reproduction.run.canaries import KINDS, build_canaries
from reproduction.run.corpus import Docstring
from reproduction.run.profile import CanarySpec

N = 60
FILLER = "and some more words that make this paragraph long enough to count as an entry"


def _document(i: int, package: str) -> Docstring:
    text = (
        f"Compute quantity number {i} of {package} from the values that were observed before.\n\n"
        + f"It is defined by equation {i} {FILLER}, {FILLER}.\n\n"
        + f"Remark {i}: {FILLER}, {FILLER}, {FILLER}.\n\n"
        + "Parameters\n----------\n"
        + f"values : array_like of {i}\n"
        + f"    The values from which quantity {i} of {package} is computed, one for each.\n"
        + "    They are not changed.\n"
    )
    return Docstring(package, "1", f"{package}/m.py", f"Module.function_{i}", "(values)", text)


def _share(marked: set[str], texts: list[str]) -> float:
    return float(np.mean([text in marked for text in texts]))


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Docstring]]:
    found = {
        "alpha": [_document(i, "alpha") for i in range(N)],
        "beta": [_document(i, "beta") for i in range(N)],
    }
    # Repetitions, as base classes and their children have them; none may serve two records.
    found["beta"] += found["beta"][:30]
    found["beta"].append(Docstring("beta", "1", "m.py", "", "", found["beta"][0].text + "x"))
    found["beta"].append(Docstring("beta", "1", "m.py", "f", "(a)", f"Café {FILLER}, {FILLER}."))
    monkeypatch.setattr(canaries, "harvest", found.__getitem__)
    return found


SPECS = [CanarySpec(kind, 20, 1, kind=kind) for kind in KINDS]


def _build(seed: int, specs: list[CanarySpec] | None = None) -> dict[str, list[dict[str, str]]]:
    return build_canaries(["alpha", "beta"], specs or SPECS, seed=seed)[0]


def _source(record: dict[str, str]) -> str:
    """Name of the docstring that a made-up record came from: package and number."""
    text = " ".join(record.values())
    number = next(w for w in text.replace("_", " ").replace("?", " ").split() if w.isdigit())
    return f"{'alpha' if 'of alpha' in text else 'beta'} {number}"


def test_every_docstring_serves_once_and_not_more() -> None:
    sources = [_source(record) for record in chain.from_iterable(_build(0).values())]
    assert len(sources) == 20 * len(KINDS)
    assert len(set(sources)) == len(sources)
    sets = _build(0, [CanarySpec("all", 2 * N, 1, kind="question")])
    assert len({_source(record) for record in sets["all"]}) == 2 * N
    with pytest.raises(InputError, match=f"set all: only {2 * N} .*question.* {2 * N + 1} wanted"):
        _build(0, [CanarySpec("all", 2 * N + 1, 1, kind="question")])


def test_a_seed_fixes_sets_and_order() -> None:
    first = _build(1)
    assert json.dumps(first) == json.dumps(_build(1))
    assert all(first[name] != _build(2)[name] for name in first)
    # Each set is in random order, not in that of the files.
    numbers = [int(_source(record).split()[1]) for record in first["signature"]]
    assert numbers != sorted(numbers)


def test_the_order_is_uniform() -> None:
    specs = [CanarySpec("all", 2 * N, 1, kind="question")]
    landed = [list(map(_source, _build(seed, specs)["all"])).index("beta 0") for seed in range(200)]
    # Uniform on 0..119: mean 59.5, standard deviation 34.6.
    assert abs(np.mean(landed) - 59.5) < 4 * 34.6 / np.sqrt(200)


def test_what_is_left_is_like_what_is_planted(packages: dict[str, list[Docstring]]) -> None:
    """Repeated docstrings are met early, and another set takes those that suit its kind, too."""
    packages["alpha"] = [
        replace(d, text=d.text.replace("observed", f"observed {FILLER}")) for d in packages["alpha"]
    ]  # too long a summary for a signature, not for a question
    wanted = {"question": 20, "signature": 30}
    specs = [CanarySpec(kind, count, 1, kind=kind) for kind, count in wanted.items()]
    repeated = {f"beta {number}" for number in range(30)}
    long = {f"alpha {number}" for number in range(N)}
    differences = []
    for seed in range(150):
        sets, left = build_canaries(["alpha", "beta"], specs, seed=seed)
        planted, others = (list(map(_source, one["question"])) for one in (sets, left))
        assert not set(planted) & set(others)
        assert len(others) >= 20
        of_repeated = _share(repeated, planted) - _share(repeated, others)
        of_long = _share(long, planted) - _share(long, others)
        differences.append([of_repeated, of_long])
    z = np.mean(differences, axis=0) / (np.std(differences, axis=0) / np.sqrt(len(differences)))
    assert (np.abs(z) < 3.5).all(), z


def _record(kind: str, text: str, signature: str = "(a, b)") -> dict[str, str] | None:
    return KINDS[kind].make_record(Docstring("p", "1", "p.py", "Class.method", signature, text))


SUMMARY = "Return the sum of both\narguments, which are numbers or arrays of them."
JOINED = SUMMARY.replace("\n", " ")
PARAGRAPHS = ["a" * 160, "b" * 100, "c" * 100]
ENTRY = "weights : array_like, optional\n" + "    Some words that describe it\n" * 3


def test_records() -> None:
    described = {"type": "array_like, optional", "description": " ".join(ENTRY.split()[4:])}
    for kind, text, expected in (
        ("signature", f"{SUMMARY}\n\nMore.", {"signature": "(a, b)", "summary": JOINED}),
        ("question", SUMMARY, {"question": "What does Class.method do?", "answer": JOINED}),
        ("signature", "Too short.", None),
        ("medium", "A short paragraph.", None),
        # Whole paragraphs: the one that would go beyond the limit is left out.
        ("medium", "\n\n".join(PARAGRAPHS), {"text": "\n\n".join(PARAGRAPHS[:2])}),
        ("parameter", "Sum.\n\nParameters\n----------\na : int\n    Short.", None),
        ("parameter", f"Sum.\n\n{ENTRY}b : int\n    B.\n", described | {"parameter": "weights"}),
    ):
        found = _record(kind, text)
        assert found == (expected and found | expected)
    assert _record("signature", SUMMARY, "") is None
    assert _record("question", SUMMARY, "") is None
    assert _record("signature", SUMMARY)["name"] == "method"
    assert _record("medium", "\n\n".join(PARAGRAPHS))["name"] == "Class.method"
