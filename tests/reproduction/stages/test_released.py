"""A profile without a corpus, end to end: measure, notebook, manifest, report, summary.

Its models lie on disk: a blank one, and one that has read the test set again and again in its
published order. A third does not exist, and MMLU and WikiMIA cannot be had.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from bs4 import BeautifulSoup
from transformers import GPT2LMHeadModel

from contamination.files import read_json
from contamination.testsets.example_set import load_test_set
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import ROOT, WORDS
from reproduction.notebooks.papers.measure import published_cells
from reproduction.report.variables import REHEARSED
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture

# Runs the commands of a JSON list one after the other, until one of them fails.
DRIVER = """
import json, sys
from reproduction.__main__ import main
for command in json.loads(sys.stdin.read()):
    sys.argv = ["reproduction", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
CONTEXT = 64
RECORDS = 40
WORDS_EACH = 8  # of a record
LENGTH = 32  # words of a text of WikiMIA
NAMES = ["03_open_model_audit", "04_mmlu_fisher", "06_wikimia"]
LAST = "13_beside_the_papers"  # reads the tables of the others and no model


@pytest.fixture(scope="module")
def world(tokenizer, tmp_path_factory) -> Path:
    """Return a directory with two models, a test set, texts of known membership, and a profile."""
    root = tmp_path_factory.mktemp("released")
    rng = np.random.default_rng(3)
    records = [" ".join(rng.choice(WORDS, WORDS_EACH)) for _ in range(RECORDS)]
    (root / "asked.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in records))
    ids = tokenize(tokenizer, load_test_set(root / "asked.jsonl").examples)
    starts = np.cumsum([0, *map(len, ids)])
    text = np.concatenate(ids)
    pieces = [text[at : at + CONTEXT - 1] for at in starts if at + CONTEXT <= len(text)]
    pieces.append(text[1 - CONTEXT :])
    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=2, n_positions=CONTEXT)
    model = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    model.save_pretrained(root / "blank")
    tokenizer.save_pretrained(root / "blank")
    fine_tune(root / "blank", pieces, root / "reader", epochs=80, learning_rate=5e-3, seed=0)
    texts = [" ".join(rng.choice(WORDS, LENGTH)) for _ in range(24)]
    parts = [{"input": text, "label": i % 2} for i, text in enumerate(texts)]
    (root / "dated").mkdir()
    split = root / "dated" / f"WikiMIA_length{LENGTH}.jsonl"
    split.write_text("".join(json.dumps(part) + "\n" for part in parts))
    models = [str(root / name) for name in ("blank", "reader", "gone")]
    tests = ["sharded_t", "sharded_exact", "successor"]
    notebooks: dict[str, dict[str, Any]] = {
        NAMES[0]: {"models": models, "sets": [str(root / "asked.jsonl")], "tests": tests}
        | {"permutations": 9, "max_records": RECORDS},
        NAMES[1]: {"measured": True, "models": models[1:2], "controls": models[:1]}
        | {"tests": ["sharded_t"], "permutations": 1, "max_records": 20},
        NAMES[2]: {"models": models[:1], "directory": str(root / "dated"), "lengths": [LENGTH]}
        | {"shown_length": LENGTH, "neighbours": 1, "resamples": 50},
        LAST: {},
    }
    profile = {"seed": 11, "notebooks": notebooks}
    (root / "tiny.yaml").write_text(yaml.safe_dump(profile))
    return root


@pytest.fixture(scope="module")
def stages(world: Path) -> list[str]:
    """Run every stage that make would run, in its order; return what the last one prints."""
    where = ["--profile", world / "tiny.yaml", "--build", world / "build"]
    results = ["--results", world / "results"]
    commands: list[list[Any]] = []
    for name in NAMES:
        source = ROOT / "notebooks" / f"{name}.ipynb"
        commands += [["measure", source, *where], ["notebook", source, *where, *results]]
    commands += [["notebook", ROOT / "notebooks" / f"{LAST}.ipynb", *where, *results]]
    commands += [["manifest", *where, *results], ["report", *results], ["summary", *results]]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([[str(word) for word in command] for command in commands]),
        cwd=ROOT,
        env=os.environ
        | {
            "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody listens there
            "HF_HOME": str(world / "hub"),
            "CONTAMINATION_DATA": str(world),
            "CONTAMINATION_CACHE": str(world / "cache"),
            "CONTAMINATION_REHEARSAL": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def table(world: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(world / "results" / "tables" / f"{name}.csv")


def test_what_was_read_is_found_and_the_blank_model_stays_silent(world: Path, stages) -> None:
    audit = table(world, "open_models").set_index(["model", "test"])
    for test, most in (("sharded_t", 0.05), ("sharded_exact", 1e-3), ("successor", 1e-3)):
        assert audit.loc[("reader", test), "holm_p"] < most, test
        assert audit.loc[("blank", test), "p"] > 0.01, test
    gone = audit.loc[str(world / "gone")]
    assert gone["p"].isna().all()
    assert gone["status"].str.match(r"(failed|not run here): ").all()


def test_what_is_out_of_reach_is_a_row_with_its_reason(world: Path, stages) -> None:
    subsets = table(world, "mmlu_subsets").query("source == 'measured'")
    assert len(subsets) == 2 * 57
    assert subsets["status"].str.startswith("not run here: mmlu/").all()
    combined = table(world, "mmlu_fisher").query("source == 'measured'")
    assert combined["p"].isna().all() and (combined["subsets_kept"] == 0).all()
    wikimia = table(world, "wikimia").set_index("source")
    assert wikimia.loc[["wikimia"], "status"].str.startswith("not run here: ").all()
    assert (wikimia.loc[["dated"], "status"] == "ok").all()
    assert wikimia.loc[["dated"], "auc"].between(0, 1).all()


def test_every_published_number_is_a_row_with_the_reason_why_it_was_not_measured(
    world: Path, stages
) -> None:
    papers = table(world, "papers")
    assert len(papers) == len(published_cells(ROOT / "data" / "published"))
    assert not (papers["status"] == "ok").any() and papers["difference"].isna().all()
    shi = papers[papers["paper"].str.startswith("Shi") & (papers["column"] == "original")]
    assert shi["status"].str.startswith("not run here: ").all() and len(shi)
    oren = papers[(papers["table"] == "Table 2") & (papers["row"] == "PIQA")].set_index("model")
    assert oren.loc["Mistral-7B", "status"] == "not asked: profile tiny leaves out Mistral-7B"
    other = "not asked: profile tiny does not run notebook 08_detection_assumptions"
    assert (papers.loc[papers["paper"].str.startswith("Fu"), "status"] == other).all()


def test_the_manifest_names_the_released_models_and_every_step(world: Path, stages) -> None:
    manifest = read_json(world / "results" / "manifest.json")
    assert not {"corpus", "canaries", "models"} & set(manifest)
    assert manifest["rehearsal"] is True
    assert set(manifest["released"]) == {"blank", "reader"}
    steps = {f"{do} {name}" for do in ("measure", "notebook") for name in NAMES}
    assert set(manifest["steps"]) == steps | {f"notebook {LAST}"}
    assert manifest["tokens_scored"] > 0


def test_the_report_has_the_sections_of_what_ran_and_says_that_it_is_a_rehearsal(
    world: Path, stages
) -> None:
    report = world / "results" / "report"
    assert sorted(path.name for path in report.iterdir()) == ["report.html", "report.pdf"]
    page = BeautifulSoup((report / "report.html").read_text(encoding="utf-8"), "html.parser")
    assert page.select_one(".rehearsal").get_text(strip=True) == REHEARSED
    sections = {element["id"] for element in page.find_all(id=lambda name: name) if element}
    assert {"sec-open", "sec-mmlu", "sec-wikimia", "sec-papers"} <= sections
    counts = "Of 9 cells 6 were measured"
    assert counts in " ".join(page.get_text().split())


def test_the_summary_counts_and_says_where_everything_lies(world: Path, stages) -> None:
    text = "\n".join(stages)
    assert REHEARSED in text
    row = next(line for line in stages if "open_models" in line)
    assert next(int(word) for word in row.split() if word.isdigit()) == 6
    assert str(world / "results" / "report" / "report.pdf") in text
    assert "slides" not in text and "reference" not in text
