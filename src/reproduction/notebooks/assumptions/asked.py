"""Scores of Fu's A4, A5 and A6 that need further prompts: some texts of notebook 08.

The model continues each text, fills a gap in it, and chooses it among changed copies.
The other part of A5, slot guessing, needs multiple-choice items, and these texts are
none.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from contamination.membership import asked
from contamination.membership.api import word_neighbours
from contamination.membership.choice import text_among
from contamination.membership.columns import OF_TEXTS
from contamination.randomness import random_stream
from contamination.scoring.generation import LocalGenerator
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import distribute
from reproduction.notebooks.assumptions.labels import KEYS, PHASES, ROWS
from reproduction.run.texts import Domain, Texts

SAMPLES = 6  # after each prefix
COPIES = 3  # among which a text stands
COPIED = 12  # part of the context that a text takes: a prompt holds it and its copies


def score_asked(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: TransformersScorer,
    after: TransformersScorer | None,
    *,
    texts: int,
    seed: int,
) -> pd.DataFrame:
    """Score the first texts of both sides of every domain, before and after fine-tuning.

    Parameters
    ----------
    domains
        The texts, by domain; those without members are left out.
    tuned
        Domain -> texts that were read in fine-tuning.
    before, after
        The model before and after fine-tuning; None where nothing was tuned.
    texts
        Most of a domain, on each side.
    seed
        Of samples and of copies.

    Returns
    -------
    scores : columns phase, domain, member, and those of `ROWS`, larger for members.
    """
    control, once, again = PHASES
    tasks = []
    for name, domain in domains.items():
        if not domain.members:
            continue
        spare = tuned.get(name, ())[:texts]
        others = domain.non_members[:texts]
        of_before = [(once, True, domain.members[:texts]), (control, True, spare)]
        of_before.append((once, False, others))
        tasks.append(partial(_score, name, before, of_before, seed=seed))
        if after is not None:
            of_after = [(again, True, spare), (again, False, others)]
            tasks.append(partial(_score, name, after, of_after, seed=seed))
    if not tasks:
        return pd.DataFrame(columns=[*KEYS, *ROWS])
    scores = pd.concat(distribute("asked texts", tasks), ignore_index=True)
    # The control's non-members have been scored by this model.
    untouched = scores[(scores["phase"] == once) & ~scores["member"]]
    return pd.concat([scores, untouched.assign(phase=control)], ignore_index=True)


def _score(
    domain: str,
    scorer: TransformersScorer,
    sides: Sequence[tuple[str, bool, Sequence[np.ndarray]]],
    *,
    seed: int,
) -> pd.DataFrame:
    """Score the texts of one domain under one model."""
    keys = []
    tokens: list[np.ndarray] = []
    # In turns: the keys of texts that follow are the other fills of a gap, on all sides alike.
    for turn in range(max(len(of_side) for _, _, of_side in sides)):
        for phase, member, of_side in sides:
            if turn < len(of_side):
                keys.append((phase, domain, member))
                tokens.append(of_side[turn])
    texts = [scorer.tokenizer.decode(ids) for ids in tokens]
    generator = LocalGenerator(scorer, domain)
    table = asked.text_scores(
        OF_TEXTS,
        scorer,
        generator,
        texts,
        seed=seed,
        samples=SAMPLES,
    )
    starts = [scorer.tokenizer.decode(ids[: scorer.context // COPIED]) for ids in tokens]
    choices = _choices(scorer, starts, seed)
    return pd.concat([pd.DataFrame(keys, columns=KEYS), table, choices], axis=1)


def _choices(
    scorer: TransformersScorer,
    texts: Sequence[str],
    seed: int,
) -> pd.DataFrame:
    """Choose each text among changed copies.

    A text of one word has no copies, and so no score.
    """
    items = {}
    for number, text in enumerate(texts):
        copies = word_neighbours(
            text,
            COPIES,
            rng=random_stream(seed, "copies of a text", text),
        )
        if copies:
            items[number] = text_among(text, copies)
    table = asked.choice_scores(scorer, list(items.values()))
    return table.set_axis(list(items)).reindex(range(len(texts)))
