"""What a model still knows that was made to forget (Shi, section 7).

Shi et al. audit LLaMA2-7B-WhoIsHarryPotter (Eldan and Russinovich 2023). A chunk of the forgotten
text is suspicious where unlearning hardly moved its Min-K% Prob: the ratio of the scores of the
unlearned and the original model lies within (1 / 1.15, 1.15). The unlearned model is then asked to
complete such chunks, and to answer questions about them. What it brings back is measured by ROUGE-L
recall, beside the same for other chunks and for a model that never read the text.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from statsmodels.stats.proportion import proportion_confint

from contamination.errors import InputError
from contamination.membership.evaluate import auc
from contamination.tables import Layout, format_estimate, lay_out
from contamination.testsets.tokens import tokenize

if TYPE_CHECKING:
    from contamination.scoring.local import TransformersScorer

Floats = NDArray[np.float64]
Question = tuple[str, str]  # prompt, expected answer

MARKER = "\nAnswer:"
WINDOW = 1.15
PROBES = {"completion": "Completion", "exact": "Word for word", "answers": "Answers"}


def split_question(text: str, marker: str = MARKER) -> Question:
    """Divide the text of a question into a prompt, marker included, and the expected answer.

    Raises InputError if the text has no marker, or no answer behind it.
    """
    before, found, answer = text.partition(marker)
    if not (found and answer.strip()):
        raise InputError(f"{text[:40]!r}: no answer after {marker!r}; give the marker before it")
    return before + found, answer.strip()


def probe_model(
    scorer: "TransformersScorer",
    chunks: Sequence[str],
    questions: Sequence[Question] = (),
    *,
    k: float = 20,
    most: int = 64,
) -> pd.DataFrame:
    """Score every chunk under one model, and see what the model brings back of it, a row per chunk.

    Columns: min_k (Min-K% Prob, nats), completion (ROUGE-L recall of the rest), exact (whether all
    tokens come back) and, with questions, answers (ROUGE-L recall of the expected answer in what
    the model writes up to a line end). All is written greedily. Raises InputError for a chunk of
    fewer than 2 tokens, a k that is no percentage, and what scoring and writing raise.

    Parameters
    ----------
    chunks : of the text that was to be forgotten.
    questions : one for every chunk; without any, nothing is asked.
    k : per cent of Min-K% Prob.
    most : tokens of the second half of a chunk, and of an answer, that are compared.
    """
    # Here: they cost the import of torch, which the tables below do not need.
    from contamination.membership.generation import completion_scores, recited
    from contamination.membership.scores import Reading, score_named
    from contamination.membership.signals import text_log_probs

    min_k = score_named(f"min_k_{k:g}")
    completed = completion_scores(scorer, chunks, most=most)
    found = text_log_probs(scorer, tokenize(scorer.tokenizer, chunks))
    table = pd.DataFrame({"min_k": [min_k.compute(Reading(one)) for one in found]})
    table["completion"] = completed["rouge_l_recall"]
    table["exact"] = completed["verbatim"] == 1
    if questions:
        prompts = tokenize(scorer.tokenizer, [prompt for prompt, _ in questions])
        answers = tokenize(scorer.tokenizer, [f" {answer}" for _, answer in questions])
        said = recited(scorer, prompts, [ids[:most] for ids in answers], first_line=True)
        table["answers"] = said["rouge_l_recall"]
    return table


def score_ratio(original: ArrayLike, unlearned: ArrayLike) -> Floats:
    """Score under the unlearned model by that under the original one, (n,).

    Scores are Min-K% Prob of the same chunks: mean log-probabilities (nats), so below 0. A ratio
    above 1 is a chunk that unlearning made less likely, below 1 one that it made likelier, and 1
    one that it left alone. Where the original model knows a chunk by heart its score is near 0, and
    a small change is a large ratio. Raises InputError for a score that is not finite and below 0.
    """
    before, after = (np.asarray(side, dtype=np.float64) for side in (original, unlearned))
    usable = np.isfinite([before, after]) & (np.array([before, after]) < 0)
    if not usable.all():
        number = int(np.argmin(usable.all(axis=0)))
        raise InputError(
            f"chunk {number} has the scores {before[number]} and {after[number]}: a ratio needs "
            "log-probabilities below 0; leave the chunk out"
        )
    ratio: Floats = after / before
    return ratio


def audit_unlearning(probed: Mapping[str, pd.DataFrame], *, window: float) -> pd.DataFrame:
    """Audit an unlearned model chunk by chunk.

    `probed` are tables of `probe_model` of the models `original` and `unlearned`, and of models of
    other names to compare with, such as one that never read the text. Returns chunk (number, from
    0), min_k_original, min_k_unlearned, ratio, suspicious, and for every model NAME what was found:
    completion_NAME, exact_NAME and, with questions, answers_NAME. Errors as in `score_ratio`.
    """
    before, after = (probed[name]["min_k"].to_numpy() for name in ("original", "unlearned"))
    ratio = score_ratio(before, after)
    table = pd.DataFrame(
        {"chunk": range(len(before)), "min_k_original": before, "min_k_unlearned": after}
    ).assign(ratio=ratio, suspicious=_suspicious(ratio, window))
    others = [found.drop(columns="min_k").add_suffix(f"_{name}") for name, found in probed.items()]
    return pd.concat([table, *(found.reset_index(drop=True) for found in others)], axis=1)


def _suspicious(ratio: Floats, window: float) -> NDArray[np.bool_]:
    """Which ratios (n,) lie within (1 / window, window), its ends left out."""
    if not window > 1:
        raise InputError(f"a window of {window}: give a number above 1, such as {WINDOW}")
    return (ratio > 1 / window) & (ratio < window)


def detection(ratio: ArrayLike, untreated: ArrayLike, windows: Sequence[float]) -> pd.DataFrame:
    """How well suspicion finds the chunks that unlearning left alone, where they are known.

    `ratio` (n,) is of `score_ratio`; `untreated` (n,) is True where nothing was done against the
    chunk. Raises InputError for chunks of one kind alone, or a window of 1 or less.

    Returns a row per window: window, chunks, untreated, suspicious, hits (both), precision and
    recall with _low and _high (NaN of none), and two numbers that need no window, the same in every
    row: auc, the chance that the log ratio of an untreated chunk is nearer to 0 than that of a
    treated one, and auc_ratio, the chance that its ratio is smaller. Intervals are of 95% (Clopper
    and Pearson) and take chunks as independent.
    """
    values, truth = np.asarray(ratio, dtype=np.float64), np.asarray(untreated, dtype=bool)
    aucs = {"auc": auc(-np.abs(np.log(values)), truth), "auc_ratio": auc(-values, truth)}
    rows = []
    for window in windows:
        suspicious = _suspicious(values, window)
        counts = {"untreated": int(truth.sum()), "suspicious": int(suspicious.sum())}
        hits = int((suspicious & truth).sum())
        row = {"window": window, "chunks": len(values)} | counts | {"hits": hits}
        for name, of in (("precision", counts["suspicious"]), ("recall", counts["untreated"])):
            low, high = proportion_confint(hits, of, method="beta") if of else (np.nan, np.nan)
            row |= {name: hits / of if of else np.nan, f"{name}_low": low, f"{name}_high": high}
        rows.append(row | aucs)
    return pd.DataFrame(rows)


def detection_layout(found: pd.DataFrame) -> Layout:
    """Lay out the rows of `detection` as text: a row per window, shares with their intervals."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        shares = {
            name.capitalize(): format_estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])
            for name in ("precision", "recall")
        }
        aucs = {"AUC, nearness": f"{row['auc']:.2f}", "AUC, ratio": f"{row['auc_ratio']:.2f}"}
        return {"Suspicious": f"{row['suspicious']}/{row['chunks']}"} | shares | aucs

    shown = found.assign(window=found["window"].map("{:g}".format))
    return lay_out(shown, {"window": "Window"}, cells)


def mean_recalls(table: pd.DataFrame, by: str = "suspicious") -> pd.DataFrame:
    """Mean of every probe and model over the two groups of chunks that a column of booleans makes.

    Takes the table of `audit_unlearning`. Returns probe (completion, exact, answers), model, yes
    and no (means where `by` is true, and where it is not), difference with difference_low and
    difference_high (1.96 standard errors; NaN of fewer than two chunks on a side).
    """
    rows = []
    for column in table.columns:
        probe, _, model = str(column).partition("_")
        if probe in PROBES:
            values, group = table[column].astype(float), table[by].astype(bool)
            sides = [values[group], values[~group]]
            yes, no = (side.mean() for side in sides)
            half = 1.96 * np.hypot(*(side.sem() for side in sides))
            rows.append((probe, model, yes, no, yes - no, yes - no - half, yes - no + half))
    names = ["probe", "model", "yes", "no", "difference", "difference_low", "difference_high"]
    return pd.DataFrame(rows, columns=names)


def recall_layout(means: pd.DataFrame, yes: str, no: str) -> Layout:
    """Lay out the rows of `mean_recalls` as text; `yes` and `no` name the two groups of chunks."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        difference = (row["difference"], row["difference_low"], row["difference_high"])
        sides = {label: format_estimate(row[n], interval=False) for label, n in named.items()}
        return sides | {"Difference": format_estimate(*difference)}

    named = {yes: "yes", no: "no"}
    shown = means.assign(probe=means["probe"].map(PROBES), model=means["model"].str.capitalize())
    return lay_out(shown, {"probe": "Probe", "model": "Model"}, cells)
