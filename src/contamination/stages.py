"""The expensive stages of a run, one per target of the Makefile: corpus, train, score.

Each reads the files of the stage before it, writes its own whole or not at all, and ends with a
JSON file that says what was done; that file is the target that `make` compares.
"""

import gc
import json
import os
import re
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from contamination.canaries import KINDS, build_canaries
from contamination.corpus import Docstring, build_corpus
from contamination.errors import InputError
from contamination.experiment import Experiment
from contamination.files import replacing, sha256_of, write_json, write_text
from contamination.profile import Profile
from contamination.test_set import load_test_set, read_records, read_text

DATA_VARIABLE = "CONTAMINATION_DATA"  # directory that `files` of a profile are relative to


def data_directory() -> Path:
    """Where downloaded data lies: the environment variable, else `data/` here."""
    return Path(os.environ.get(DATA_VARIABLE, "data"))


def make_corpus(experiment: Experiment) -> None:
    """Harvest the corpus, build the canary sets, train the tokenizer; print what was found."""
    from contamination.tokenizer import save_tokenizer, tokenize, train_tokenizer

    started = time.perf_counter()
    profile, target = experiment.profile, experiment.corpus
    (target / "corpus.json").unlink(missing_ok=True)  # an interrupted stage must not look finished
    rng = np.random.default_rng(profile.seed)
    gc.disable()  # parsing makes millions of live nodes that the collector would walk in vain
    found = _documents(profile)
    chosen = _take(found, profile.corpus.characters, rng=rng)
    canaries = _canary_files(profile, target / "canaries", rng=rng)
    gc.enable()

    with (
        replacing(target / "documents.jsonl") as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        file.writelines(json.dumps({"text": d.text}, ensure_ascii=False) + "\n" for d in chosen)
    tokenizer = train_tokenizer((d.text + "\n" for d in chosen), profile.corpus.vocabulary)
    save_tokenizer(tokenizer, target / "tokenizer")
    tokens = [len(ids) for ids in tokenize(tokenizer, [d.text + "\n" for d in chosen])]

    for name, facts in canaries.items():
        test_set = load_test_set(target / "canaries" / f"{name}.jsonl", facts["template"])
        ids = tokenize(tokenizer, test_set.examples)
        facts |= {"tokens": sum(map(len, ids)), "revision": test_set.revision}
    write_json(
        target / "corpus.json",
        {
            "packages": _per_package(found, chosen, tokens),
            "documents": len(chosen),
            "characters": sum(len(d.text) for d in chosen),
            "tokens": sum(tokens),
            "canaries": canaries,
            "sha256": {
                "documents": sha256_of(target / "documents.jsonl"),
                "tokenizer": sha256_of(target / "tokenizer" / "tokenizer.json"),
            },
            "seconds": time.perf_counter() - started,
        },
    )
    _print_corpus(experiment)


def _documents(profile: Profile) -> list[Docstring]:
    if profile.corpus.packages:
        bar = tqdm(profile.corpus.packages, desc="harvest docstrings", unit="package")
        return _distinct([document for package in bar for document in build_corpus([package])])
    return [document for name in profile.corpus.files for document in _read_documents(name)]


def _distinct(documents: list[Docstring]) -> list[Docstring]:
    return list({" ".join(d.text.lower().split()): d for d in reversed(documents)}.values())[::-1]


def _read_documents(name: str) -> list[Docstring]:
    """Documents of a file: the `text` fields of a .jsonl, or the articles of a WikiText file."""
    path = data_directory() / name
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; set {DATA_VARIABLE} to the directory that holds {name}"
        )
    if path.suffix == ".jsonl":
        texts = list(load_test_set(path, "text/1").examples)
    else:
        # A WikiText article starts with " = Title = "; deeper headings have more equal signs.
        texts = re.split(r"\n(?= = [^=\n]+ = \n)", read_text(path))
    return [Docstring(name, "", name, "", "", t.strip()) for t in texts if t.strip()]


def _take(
    found: list[Docstring], characters: int | None, *, rng: np.random.Generator
) -> list[Docstring]:
    """Shuffle the documents and take them until the wanted number of characters is reached."""
    shuffled = [found[i] for i in rng.permutation(len(found))]
    if characters is None:
        return shuffled
    totals = np.cumsum([len(d.text) for d in shuffled])
    if not len(totals) or totals[-1] < characters:
        raise InputError(
            f"the corpus has {int(totals[-1]) if len(totals) else 0} characters, {characters} "
            "wanted: lower corpus.characters or add a package"
        )
    return shuffled[: int(np.searchsorted(totals, characters)) + 1]


def _canary_files(
    profile: Profile, directory: Path, *, rng: np.random.Generator
) -> dict[str, dict[str, Any]]:
    """Write every canary set as JSONL in canonical order; return what is known of each."""
    made = build_canaries(
        list(profile.corpus.held_out), [s for s in profile.canaries if s.kind], rng=rng
    )
    facts: dict[str, dict[str, Any]] = {}
    for spec in profile.canaries:
        if spec.kind:
            template = KINDS[spec.kind].template
            records: list[dict[str, Any]] = list(made[spec.name])
        else:
            template = str(spec.template)
            path = data_directory() / str(spec.file)
            load_test_set(path, template, first=spec.examples)  # a bad record is told here
            records = [record for _, record in read_records(path)[: spec.examples]]
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        write_text(directory / f"{spec.name}.jsonl", "".join(lines))
        facts[spec.name] = {
            "template": template,
            "kind": spec.kind or "file",
            "dup_count": spec.dup_count,
            "examples": len(records),
        }
    return facts


def _per_package(
    found: list[Docstring], chosen: list[Docstring], tokens: list[int]
) -> list[dict[str, object]]:
    available = Counter(d.package for d in found)
    rows: dict[str, dict[str, int]] = {}
    for document, count in zip(chosen, tokens, strict=True):
        row = rows.setdefault(document.package, Counter())
        row["documents"] += 1
        row["characters"] += len(document.text)
        row["tokens"] += count
    versions = {d.package: d.version for d in found}
    return [
        {"package": name, "version": versions[name], "available": count, **rows.get(name, {})}
        for name, count in available.items()
    ]


def _print_corpus(experiment: Experiment) -> None:
    facts = experiment.corpus_facts
    corpus = Table(title="Training corpus")
    for column in ("package", "version", "available", "documents", "characters", "tokens"):
        corpus.add_column(column, justify="left" if column in ("package", "version") else "right")
    for row in facts["packages"]:
        corpus.add_row(*(_cell(row.get(c.header, 0)) for c in corpus.columns))
    corpus.add_section()
    sizes = (_cell(facts[k]) for k in ("documents", "characters", "tokens"))
    corpus.add_row("total", "", "", *sizes)
    sources = ", ".join(experiment.profile.corpus.held_out) or "files of the profile"
    sets = Table(title=f"Canary test sets (from {sources})")
    for column in ("set", "template", "examples", "tokens", "dup_count"):
        sets.add_column(column, justify="left" if column in ("set", "template") else "right")
    for spec in experiment.profile.canaries:
        row = facts["canaries"][spec.name]
        sets.add_row(spec.name, *(_cell(row[str(c.header)]) for c in sets.columns[1:]))
    Console().print(corpus, sets)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def train_model(experiment: Experiment, name: str) -> None:
    """Train the contaminated model, or the clean one on the same corpus without the canaries."""
    profile, directory = experiment.profile, experiment.model(name)
    experiment.require_corpus()  # before the slow imports

    from transformers import AutoTokenizer

    from contamination.injection import mix
    from contamination.tokenizer import tokenize
    from contamination.training import train

    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    documents = load_test_set(experiment.corpus / "documents.jsonl", "text/1").examples
    canaries = {
        spec.name: (np.concatenate(tokenize(tokenizer, experiment.test_set(spec.name).examples)), n)
        for spec in profile.canaries
        if (n := spec.dup_count if name == "contaminated" else 0)
    }
    mixture = mix(
        tokenize(tokenizer, documents),
        canaries,
        tokenizer.eos_token_id,
        rng=np.random.default_rng([profile.seed, 1]),
    )
    summary = train(
        mixture.tokens,
        tokenizer,
        profile.model,
        profile.training,
        directory,
        seed=profile.seed,
        label=f"train {name} model",
    )
    write_json(
        directory / "training.json",
        {**summary, "injections": [asdict(injection) for injection in mixture.injections]},
    )


def score_model(experiment: Experiment, name: str) -> None:
    """Score every canary set under a model: in shards, and whole for the permutation test."""
    started = time.perf_counter()
    experiment.model(name)  # an unknown name is told before the progress bar
    experiment.require_corpus()
    scoring = experiment.profile.scoring
    tokens = {}
    plans = [(scoring.shards, scoring.permutations), (1, scoring.whole_set_permutations)]
    jobs = [(spec.name, *plan) for spec in experiment.profile.canaries for plan in plans]
    with tqdm(jobs, desc=f"score {name} model", unit="store") as bar:
        for dataset, shards, permutations in bar:
            store = experiment.scored(name, dataset, shards=shards, permutations=permutations)
            tokens[f"{dataset}/{shards}"] = sum(store.header.example_tokens) * (permutations + 1)
    write_json(
        experiment.build / "stores" / f"{name}.json",
        {"tokens": tokens, "seconds": time.perf_counter() - started},
    )
