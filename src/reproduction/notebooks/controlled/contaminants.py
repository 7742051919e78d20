"""The contaminants of notebook 09, and the documents among which they are injected.

An example is inserted whole between two documents. *Outliers*: in Shi, examples of
downstream sets in a web corpus; here, records like those of the canary sets, from
sources that the corpus holds out. *In-distribution*: there, news in a corpus of news;
here, documents of the corpus's own sources that were left out. Chance divides each set
in halves of which one is injected.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.controlled import tables
from reproduction.notebooks.controlled.settings import Settings
from reproduction.run.corpus import DOCUMENTS, is_divided, non_members, read_documents
from reproduction.run.experiment import Experiment
from reproduction.run.texts import tuning_texts

LEFT_OUT = "left-out documents"  # name of the in-distribution set
SHORTEST = 32  # tokens of a document, as the shortest texts of Shi's WikiMIA
# OUTLIER or INSIDE, the source, whether it is injected, the number in its half.
CONTAMINANT = ["contaminant", "dataset", "member", "text"]


def contaminant_sets(
    experiment: Experiment,
    tokenizer: PreTrainedTokenizerBase,
    settings: Settings,
    *,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Find the contaminants: outlier sets, then the in-distribution one.

    Text of the source (a kind of docstring, or a file) of the canary sets `outliers`
    that was never planted becomes a set; canary sets of one source give one.

    Parameters
    ----------
    experiment
        The run.
    tokenizer
        Tokenizer of the run's models.
    settings
        Outliers, examples of each half, and files of further text.
    rng
        Divides each set in halves.

    Returns
    -------
    sets : `CONTAMINANT` and example (with its separator), members of a set first.

    Raises
    ------
    InputError
        For too little text, a set in `validation_files` without a file, or a bad file.
    """
    examples = settings.examples
    groups = _outlier_groups(experiment, settings)
    if is_divided(experiment.corpus):
        groups[tables.INSIDE, LEFT_OUT] = _left_out_documents(experiment, tokenizer)
    rows = []
    for (contaminant, name), texts in groups.items():
        if len(texts) < 2 * examples:
            raise InputError(
                f"{name}: {len(texts)} texts, {2 * examples} wanted, of which half is "
                "injected: lower `examples`, or name a file with more text in "
                "`validation_files`"
            )
        drawn = rng.permutation(len(texts))[: 2 * examples]
        for place, i in enumerate(drawn):
            is_injected = place < examples
            rows.append((contaminant, name, is_injected, place % examples, texts[i]))
    return pd.DataFrame(rows, columns=[*CONTAMINANT, "example"])


def _outlier_groups(
    experiment: Experiment, settings: Settings
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return texts of the sources of the outlier sets, by contaminant and source."""
    longest = 0.0  # mean tokens of an example, of the set with the longest
    for name in settings.outliers:
        facts = experiment.corpus_facts["canaries"][experiment.spec(name).name]
        longest = max(longest, facts["tokens"] / facts["examples"])
    sources, texts = tuning_texts(
        experiment,
        tokens=int(2 * settings.examples * longest),
        files=settings.validation_files,
    )
    return {(tables.OUTLIER, sources[name]): texts[sources[name]] for name in settings.outliers}


def _left_out_documents(
    experiment: Experiment, tokenizer: PreTrainedTokenizerBase
) -> tuple[str, ...]:
    """Return the documents left out of the corpus that a context holds as a whole."""
    context = experiment.profile.model.n_positions
    texts = [text + "\n" for _, text in non_members(experiment.corpus)]  # as it is read
    lengths = [len(ids) for ids in tokenize(tokenizer, texts)]
    return tuple(text for text, n in zip(texts, lengths, strict=True) if SHORTEST <= n <= context)


def dose_table(
    tokenizer: PreTrainedTokenizerBase, sets: pd.DataFrame, sizes: Sequence[int]
) -> pd.DataFrame:
    """Return the share of a mixture that its contaminants are, if each is injected once.

    Columns: corpus_tokens, contaminant, tokens and share, a row for each size and
    contaminant.
    """
    members = sets[sets["member"]]
    rows = []
    for corpus_tokens in sorted(sizes):
        for contaminant, examples in members.groupby("contaminant", sort=False)["example"]:
            tokens = sum(len(ids) for ids in tokenize(tokenizer, examples.tolist()))
            rows.append((corpus_tokens, contaminant, tokens, tokens / corpus_tokens))
    return pd.DataFrame(rows, columns=["corpus_tokens", "contaminant", "tokens", "share"])


def collect_background(
    experiment: Experiment, tokenizer: PreTrainedTokenizerBase, sets: pd.DataFrame, *, tokens: int
) -> tuple[list[np.ndarray], int]:
    """Collect documents: those left out of the corpus, then some of its own.

    The last document may go beyond the tokens needed.

    Parameters
    ----------
    experiment
        The run.
    tokenizer
        Tokenizer of the run's models.
    sets
        Contaminants, which are left out.
    tokens
        That are needed.

    Returns
    -------
    documents : int32, each closed by the end-of-text token.
    unread : tokens at their start that the base model has not read; the others it has,
        once.

    Raises
    ------
    InputError
        If all documents together have fewer tokens.
    """
    used = set(sets["example"])
    background: list[np.ndarray] = []
    length = 0
    unread = 0
    for text, is_new in _documents(experiment):
        if length >= tokens:
            break
        line = text + "\n"
        if line in used:
            continue
        (ids,) = tokenize(tokenizer, [line])
        document = np.append(ids, np.int32(tokenizer.eos_token_id))
        background.append(document)
        length += len(document)
        if is_new:
            unread += len(document)
    if length < tokens:
        raise InputError(
            f"{experiment.corpus}: {length} tokens of documents that are no "
            f"contaminants, {tokens} wanted: lower the corpus sizes"
        )
    return background, unread


def _documents(experiment: Experiment) -> Iterator[tuple[str, bool]]:
    """Yield documents, unread ones first, and whether the base model has not read it."""
    for _, text in non_members(experiment.corpus):
        yield text, True
    for _, text in read_documents(experiment.corpus / DOCUMENTS):
        yield text, False
