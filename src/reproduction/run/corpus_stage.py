"""The first stage of a run: documents, canary sets, tokenizer, token stream.

Documents pass through one at a time, so a corpus of files may be larger than memory as
long as the profile takes it whole (no `characters`): only a part of a corpus has to be
shuffled to be chosen.
"""

import gc
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.files import replacing, sha256_of, write_json, write_text
from contamination.randomness import random_stream
from contamination.testsets.example_set import make_test_set
from contamination.testsets.records import read_records
from contamination.testsets.sources import data_file
from contamination.testsets.tokens import id_type, tokenize
from reproduction.run.canaries import KINDS, LEFT, build_canaries
from reproduction.run.corpus import (
    DOCUMENTS,
    MEMBERS,
    NON_MEMBERS,
    Document,
    build_corpus,
    document_line,
    read_documents,
    read_file,
    write_comparable,
)
from reproduction.run.profile import Profile, Released, RunFiles
from reproduction.run.tokenizer import train_tokenizer

CHUNK = 1024  # documents tokenised at a time


def make_corpus(run: RunFiles) -> None:
    """Write the documents, canary sets, tokenizer and tokens, and at last `corpus.json`.

    If the profile trains a released model further, write this model, too, and take its
    tokenizer.
    """
    started = time.perf_counter()
    profile = run.profile
    target = run.corpus
    # an interrupted stage must not look finished
    (target / "corpus.json").unlink(missing_ok=True)
    tokenizer = None
    if isinstance(profile.model, Released):
        tokenizer = _copy_released(profile.model, run.released)
    # parsing makes millions of live nodes, which the collector would walk for nothing
    gc.disable()
    try:
        rng = random_stream(profile.seed, "documents")
        documents, sources = _documents(profile, target, rng=rng)
        canaries = _canary_files(profile, target)
    finally:
        gc.enable()
    counts = _write_documents(documents, target)
    if tokenizer is None:
        texts = (f"{text}\n" for _, text in read_documents(target / DOCUMENTS))
        tokenizer = train_tokenizer(texts, profile.corpus.vocabulary)
    with replacing(target / "tokenizer") as temporary:
        tokenizer.save_pretrained(temporary)
    counts["tokens"] = _write_tokens(tokenizer, target, counts["documents"].total())
    for name, facts in canaries.items():
        path = target / "canaries" / f"{name}.jsonl"
        test_set = make_test_set(name, read_records(path), facts["template"], str(path))
        ids = tokenize(tokenizer, test_set.examples)
        facts["tokens"] = sum(map(len, ids))
        facts["revision"] = test_set.revision
    packages = []
    for source in sources:
        by_name = {name: counter[source["package"]] for name, counter in counts.items()}
        packages.append(source | by_name)
    totals = {name: counter.total() for name, counter in counts.items()}
    checksums = {
        "documents": sha256_of(target / DOCUMENTS),
        "tokenizer": sha256_of(target / "tokenizer" / "tokenizer.json"),
    }
    contents: dict[str, Any] = {"packages": packages}
    contents |= totals
    contents["canaries"] = canaries
    contents["sha256"] = checksums
    contents["seconds"] = time.perf_counter() - started
    write_json(target / "corpus.json", contents)


def _write_documents(
    documents: Iterable[Document],
    target: Path,
) -> dict[str, Counter[str]]:
    """Write the documents of the corpus; count documents and characters by source."""
    count: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    with (
        replacing(target / DOCUMENTS) as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        for source, text in documents:
            count[source] += 1
            characters[source] += len(text)
            file.write(document_line(source, text))
    return {"documents": count, "characters": characters}


def _copy_released(shape: Released, target: Path) -> PreTrainedTokenizerBase:
    """Write the weights (float32) and the tokenizer of a released model.

    What a pretrained model learns from a few copies is nearer to the paper's 1.4
    billion parameters (Oren, section 4.1) than what a small one learns from scratch.
    Errors are those of `contamination.scoring.loading`.
    """
    # Imported here: other profiles do not depend on how a model is opened
    # (`stages.rules`).
    import torch

    from contamination.scoring import loading
    from contamination.scoring.models import find_model
    from contamination.scoring.unpacking import unpack

    entry = find_model(shape.released)
    exact = torch.float32
    source = unpack(loading.ModelSource(entry.id, revision=entry.revision), exact)
    config = loading.load_config(source)
    network = loading.load_network(source, config, exact, torch.device("cpu"))
    with replacing(target) as temporary:
        network.save_pretrained(temporary)
        loading.load_tokenizer(source).save_pretrained(temporary)
    return AutoTokenizer.from_pretrained(target)


def _documents(
    profile: Profile,
    target: Path,
    *,
    rng: np.random.Generator,
) -> tuple[Iterable[Document], list[dict[str, Any]]]:
    """Return the documents in training order, and the facts about each source.

    Where only a part is taken, the documents for membership inference are written on
    the way.
    """
    corpus = profile.corpus
    if corpus.packages:
        documents, sources = _documents_of_packages(corpus.packages)
    else:
        documents = itertools.chain.from_iterable(map(read_file, corpus.files))
        sources = [{"package": name, "version": ""} for name in corpus.files]
    # of an earlier corpus, of which a part was taken
    for name in (MEMBERS, NON_MEMBERS):
        (target / name).unlink(missing_ok=True)
    if corpus.characters is None:
        return documents, sources

    in_order = list(documents)
    shuffled = [in_order[i] for i in rng.permutation(len(in_order))]
    ends = np.cumsum([len(text) for _, text in shuffled])
    available = ends[-1:].sum()  # 0 of no document
    if available < corpus.characters:
        raise InputError(
            f"the corpus has {available} characters, {corpus.characters} wanted: lower "
            "corpus.characters or add a package",
        )
    count = int(np.searchsorted(ends, corpus.characters)) + 1
    read = shuffled[:count]
    unread = shuffled[count:]
    write_comparable(read, unread, target)
    return read, sources


def _documents_of_packages(
    packages: Sequence[str],
) -> tuple[Iterable[Document], list[dict[str, Any]]]:
    """Harvest packages; return the documents, and facts about each package."""
    docstrings = build_corpus(tqdm(packages, desc="harvest docstrings", unit="package"))
    available = Counter((docstring.package, docstring.version) for docstring in docstrings)
    sources: list[dict[str, Any]] = []
    for (name, version), count in available.items():
        sources.append({"package": name, "version": version, "available": count})
    return [(docstring.package, docstring.text) for docstring in docstrings], sources


def _write_tokens(
    tokenizer: PreTrainedTokenizerBase,
    target: Path,
    documents: int,
) -> Counter[str]:
    """Write the corpus as one array of ids; a token ends each document.

    `tokens.bin` holds them, `ends.npy` the offset after each document. Return the
    tokens by source, end-of-text tokens not counted.
    """
    tokens: Counter[str] = Counter()
    lengths: list[int] = []
    kind = id_type(tokenizer)
    bar = tqdm(
        read_documents(target / DOCUMENTS),
        "tokenise",
        documents,
        leave=False,
        unit="document",
    )
    reader = iter(bar)
    with replacing(target / "tokens.bin") as temporary, temporary.open("wb") as file:
        while chunk := list(islice(reader, CHUNK)):
            ids_of_chunk = tokenize(tokenizer, [f"{text}\n" for _, text in chunk])
            for (source, _), ids in zip(chunk, ids_of_chunk, strict=True):
                tokens[source] += len(ids)
                lengths.append(len(ids) + 1)
                np.append(ids, tokenizer.eos_token_id).astype(kind).tofile(file)
    with replacing(target / "ends.npy") as temporary:
        np.save(temporary, np.cumsum(lengths, dtype=np.int64))
    return tokens


def _canary_files(profile: Profile, target: Path) -> dict[str, dict[str, Any]]:
    """Write every canary set and the records left over; return their facts."""
    made_here = [spec for spec in profile.canaries if spec.kind]
    sets, left_over = build_canaries(
        list(profile.corpus.held_out),
        made_here,
        seed=profile.seed,
    )
    facts: dict[str, dict[str, Any]] = {}
    files: dict[str, list[Any]] = {f"{LEFT}/{kind}": records for kind, records in left_over.items()}
    for spec in profile.canaries:
        if spec.kind:
            template = KINDS[spec.kind].template
            records: list[Any] = sets[spec.name]
        else:
            template = str(spec.template)
            path = data_file(str(spec.file))
            rows = read_records(path)
            test_set = make_test_set(spec.name, rows, template, str(path), spec.examples)
            records = list(test_set.records)
        files[f"canaries/{spec.name}"] = records
        facts[spec.name] = {
            "template": template,
            "kind": spec.kind or "file",
            "dup_count": spec.dup_count,
            "examples": len(records),
        }
    for name, records in files.items():
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        write_text(target / f"{name}.jsonl", "".join(lines))
    return facts
