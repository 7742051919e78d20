"""Streams of random numbers: no two uses share one, and nobody opens one without a name."""

import ast
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contamination
from contamination.errors import InputError
from contamination.randomness import KeyedStream, derived_seed, random_stream
from fakes.data_fixtures import profile_data, write_profile
from fakes.made_up_registry import jsonl

ROOT = Path(__file__).parents[1]
SOURCE = Path(contamination.__file__).parents[1]  # of both packages
OPENERS = {"random_stream": 1, "derived_seed": 1, "store_stream": 1}  # place of the name

KEYS = st.lists(st.integers(0, 20) | st.text('01,[]" a', max_size=4), max_size=3)
PATHS = st.tuples(st.integers(0, 3) | st.integers(0, 2**200), st.text("ab 01", max_size=4), KEYS)


def first_draws(seed, name, *keys) -> tuple[int, ...]:
    return tuple(random_stream(seed, name, *keys).integers(1 << 62, size=3).tolist())


@given(PATHS, PATHS)
def test_streams_are_the_same_exactly_if_seed_name_and_keys_are(one, other):
    same = first_draws(*one[:2], *one[2]) == first_draws(*other[:2], *other[2])
    assert same == (one == other)


def test_numbers_of_numpy_are_numbers():
    assert first_draws(np.int64(3), "a", np.int32(4)) == first_draws(3, "a", 4)
    assert 0 <= derived_seed(3, "a") < 2**32
    assert derived_seed(3, "a") != derived_seed(3, "b")


def _sources() -> dict[str, str]:
    """Text of every module and notebook."""
    found = {str(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        found[str(path)] = "\n".join(code)
    return found


def test_a_name_is_used_in_one_place():
    places = defaultdict(list)
    for file, text in _sources().items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if (place := OPENERS.get(node.func.id)) and not file.endswith("randomness.py"):
                name = node.args[place]
                if isinstance(name, ast.Constant):
                    places[name.value].append(f"{file}:{node.lineno}")
                else:
                    assert file.endswith("battery.py")  # which hands on the names of its streams
    assert len(places) > 20
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.fixture
def opened(monkeypatch):
    """Record which lines of the package opened a generator in each state."""
    sites, original = defaultdict(set), np.random.default_rng

    def recorded(*seed):
        rng = original(*seed)
        frame = sys._getframe(1)
        while frame and frame.f_code.co_filename.endswith("randomness.py"):
            frame = frame.f_back
        file = Path(frame.f_code.co_filename)
        if SOURCE in file.parents:
            site = f"{file.relative_to(SOURCE)}:{frame.f_lineno}"
            sites[str(rng.bit_generator.state["state"])].add(site)
        return rng

    monkeypatch.setattr(np.random, "default_rng", recorded)
    return sites


def test_no_two_places_of_a_run_share_a_stream(opened, tmp_path, monkeypatch):
    from contamination.audit.request import Request
    from contamination.audit.verdict import audit
    from contamination.membership.api import membership_scores
    from contamination.scoring.local import TransformersScorer
    from contamination.testsets.sources import DATA_VARIABLE
    from reproduction.run.corpus_stage import make_corpus
    from reproduction.run.experiment import Experiment
    from reproduction.run.fine_tuning import fine_tune
    from reproduction.run.texts import tuning_texts
    from reproduction.run.training import train_model

    texts = [f"Document number {i}.\nIt has two lines and the number {i * i}." for i in range(40)]
    records = [{"goal": f"Goal {i}", "sol1": f"Do {i}", "sol2": f"Leave {i}"} for i in range(40)]
    (tmp_path / "text.jsonl").write_bytes(jsonl([{"text": text} for text in texts]))
    (tmp_path / "piqa.jsonl").write_bytes(jsonl(records))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    planted = {"name": "piqa", "file": "piqa.jsonl", "template": "piqa/1"}
    profile = profile_data() | {
        "corpus": {"files": ["text.jsonl"], "vocabulary": 300, "characters": 1200},
        "canaries": [planted | {"examples": 24, "dup_count": 2}],
        "model": {"n_embd": 32, "n_layer": 1, "n_head": 1, "n_positions": 64},
    }
    run = Experiment(write_profile(tmp_path / "run.yaml", profile), tmp_path / "build")
    make_corpus(run)
    for model in ("contaminated", "clean"):
        train_model(run, model)
    tuning_texts(run, tokens=10)
    directory = fine_tune(run.model("clean"), texts, tmp_path / "tuned", learning_rate=0.01, seed=3)
    scorer, test_set = TransformersScorer(directory), run.test_set("piqa")
    request = Request(["min_p", "min_p_orderings"], 2, permutations=3, seed=3, directory=tmp_path)
    audit(scorer, test_set, request)
    membership_scores(scorer, texts[:3], neighbours=2, seed=3)
    assert len(opened) > 15
    assert {tuple(sorted(where)) for where in opened.values() if len(where) > 1} == set()


KEY = bytes(range(32))


def test_a_word_that_would_favour_small_numbers_is_passed_over(monkeypatch):
    from contamination import randomness

    top = (1 << 64) - 1  # 2^64 = 1 mod 3: of all words, this one is too many
    words = iter([top, top - 1])
    monkeypatch.setattr(randomness, "_keyed_words", lambda *_: words)
    assert KeyedStream(KEY, "a").below(3) == 2  # 2^64 - 2 is 2 mod 3


def test_what_no_stream_can_be_opened_with_is_refused():
    with pytest.raises(InputError, match="120 bits"):
        KeyedStream(bytes(15), "a")
    with pytest.raises(InputError, match="seed is -1"):
        random_stream(-1, "a")
