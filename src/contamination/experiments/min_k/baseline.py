"""Min-K% on planted test sets, beside the provable test (Oren, Table 5).

Spans of a fixed number of tokens are cut from every planted set. A threshold of Min-K% Prob (Shi,
section 3) is tuned on text that was never planted, and the share of spans above it is what the
heuristic calls members. No theorem bounds how often it is wrong: that is measured on more such
text, and under a model that has read none of the sets.

The text for tuning is of the same kind as the set (`contamination.pretraining.tuning_texts`), which
is the kindest setting for a heuristic.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from contamination.errors import InputError
from contamination.membership.api import score_tokens
from contamination.membership.evaluate import Threshold, evaluate
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.pretraining.tuning_texts import tuning_texts
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.testsets.tokens import tokenize


def min_k_baseline(
    experiment: Experiment,
    *,
    rng: np.random.Generator,
    length: int = 512,
    ks: Sequence[float] = (20,),
    validation_spans: int = 80,
    validation_files: Mapping[str, str] | None = None,
    fpr: float = 0.05,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure the share of the spans of every canary set that scores call members, by model.

    A row per model, set and score: model, dataset, dup_count (what the contaminated model was
    given), length, score, spans, validation_set, tuning_spans, checking_spans, and the columns of
    `judge`. Raises InputError for an argument that cannot be, a set without a span or too little
    text for the threshold, and as `tuning_texts`.

    Parameters
    ----------
    rng : draws the bootstrap of the AUC.
    length : tokens of a span, at most the context of the model. Spans of the paper (512) fit the
        context of its model (2,048), so that each token is read after all of its span.
    ks : percentages of Min-K% and Min-K%++.
    validation_spans : from text of each kind that was never planted. Half of them tune the
        threshold, more where half would allow no false positive; the others check it.
    validation_files : canary set -> file of the data directory to take that text from; by default
        it is the set's own file.
    fpr : share of the tuning spans that may be called members.
    resamples : of the bootstrap.
    """
    if not 0 < fpr < 1:
        raise InputError(f"fpr is {fpr}: give a rate between 0 and 1, such as 0.05")
    fewest = math.ceil(1 / fpr - 1e-9)  # spans of which a single one is a share of at most `fpr`
    if length < 2 or validation_spans < fewest or not ks:
        raise InputError(
            f"length {length}, validation_spans {validation_spans}, ks {list(ks)}: give at least "
            f"2 tokens, {fewest} spans (fewer allow no false positive at {fpr:g}) and one k"
        )
    size = min(length, experiment.profile.model.n_positions)
    wanted = validation_spans * size
    sources, texts = tuning_texts(experiment, tokens=wanted, files=validation_files)
    sets = {name: experiment.test_set(name).examples for name in sources}
    rows = []
    for model in MODELS:
        scorer = TransformersScorer(experiment.model(model))
        spans = {s: cut(scorer, found, size)[:validation_spans] for s, found in texts.items()}
        validation = _scores_of(scorer, spans, ks)
        planted = {name: cut(scorer, examples, size) for name, examples in sets.items()}
        for name, scores in _scores_of(scorer, planted, ks).items():
            source = sources[name]
            tried = validation[source]
            if not len(scores) or len(tried) < fewest:
                raise InputError(
                    f"canary set {name}: {len(scores)} spans of {size} tokens, and {len(tried)} of "
                    f"text never planted ({source}), of 1 and {fewest} needed: shorten `length`, "
                    "or name a file with more text in `validation_files`"
                )
            middle = max(fewest, -(-len(tried) // 2))
            facts: dict[str, Any] = {
                "model": model,
                "dataset": name,
                "dup_count": experiment.spec(name).dup_count,
                "length": size,
                "spans": len(scores),
                "validation_set": source,
                "tuning_spans": middle,
                "checking_spans": len(tried) - middle,
            }
            halves = tried[:middle], tried[middle:]
            judged = judge(scores, *halves, fpr=fpr, rng=rng, resamples=resamples)
            rows += [facts | row for row in judged.to_dict("records")]
    return pd.DataFrame(rows)


def cut(scorer: Scorer, texts: Sequence[str], length: int) -> list[np.ndarray]:
    """Spans of `length` tokens of the texts, one after the other; a shorter rest is left out."""
    if not texts:  # a file of which every record is planted
        return []
    stream = np.concatenate(tokenize(scorer.tokenizer, texts))
    return [stream[i : i + length] for i in range(0, len(stream) - length + 1, length)]


def _scores_of(
    scorer: Scorer, spans: Mapping[str, Sequence[np.ndarray]], ks: Sequence[float]
) -> dict[str, pd.DataFrame]:
    """Score spans group by group: (spans, scores), larger for members, from one pass."""
    every = [ids for group in spans.values() for ids in group]
    names = [f"{family}_{k:g}" for family in ("min_k", "min_k_pp") for k in ks]
    table = score_tokens(scorer, every, ["loss", *names, "zlib"])
    ends = np.cumsum([len(group) for group in spans.values()])
    return {
        name: table.iloc[end - len(group) : end]
        for (name, group), end in zip(spans.items(), ends, strict=True)
    }


def judge(
    members: pd.DataFrame,
    tuning: pd.DataFrame,
    checking: pd.DataFrame,
    *,
    fpr: float,
    rng: np.random.Generator,
    resamples: int,
) -> pd.DataFrame:
    """Tune a threshold of every score, and apply it to the spans of a set.

    `members`, `tuning` and `checking` are (spans, scores) of the set, and of text that was never
    planted. A row per score: threshold, validation_fpr (share of `checking` called members; NaN of
    none), share_detected with _low and _high (Clopper and Pearson, 95%, as if spans were
    independent), and auc and tpr_at_5_fpr with _low and _high, of the set against all text that was
    never planted.
    """
    every = pd.concat([members, tuning, checking])
    truth = np.arange(len(every)) < len(members)
    measured = evaluate(every, truth, rng=rng, resamples=resamples)
    kept = [c for c in measured if str(c).startswith(("auc", "tpr_at_5_"))]
    rows = []
    for name, measures in measured.set_index("score")[kept].iterrows():
        threshold = Threshold.at_fpr_of_non_members(tuning[name], fpr=fpr)
        hits = int(threshold.apply(members[name]).sum())
        low, high = proportion_confint(hits, len(members), method="beta")
        wrong = threshold.apply(checking[name])
        rows.append(
            {
                "score": name,
                "threshold": threshold.value,
                "validation_fpr": wrong.mean() if len(wrong) else float("nan"),
                "share_detected": hits / len(members),
                "share_detected_low": low,
                "share_detected_high": high,
                **measures,
            }
        )
    return pd.DataFrame(rows)
