"""The passes of notebook 08: models of every size are fine-tuned, and score all texts."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from contamination.experiments.assumptions.detection import FIRST, KEYS, LABELS
from contamination.membership.blind import SCORED, blind_rows
from contamination.membership.stored import stored_token_scores
from contamination.pretraining.domain_texts import Domain, Texts, domain_texts, to_train_on
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.fine_tuning import fine_tune
from contamination.pretraining.measured import parts_of
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

READ_HERE = "read here"  # benchmark of the domains of the corpus


def measure(
    experiment: Experiment,
    *,
    length: int,
    texts: int,
    spare: int,
    epochs: int,
    learning_rate: float,
) -> dict[str, pd.DataFrame]:
    """Find the texts of every domain, fine-tune the clean models on spare ones, and score all.

    Tables: `domains` (domain, and how many members, non_members and spare texts it has), `scored`
    (model, and a row per text and phase as of `score_phases`), and `blind`, what needs no model, as
    of `score_baselines`. Each model is fine-tuned in one process.
    """
    names = [*experiment.sizes, "clean"]
    tokenizer = TransformersScorer(experiment.model("clean")).tokenizer
    domains = domain_texts(experiment, tokenizer, length=length, texts=texts, spare=spare)
    tuned = to_train_on(domains)
    spare_texts = [ids for found in tuned.values() for ids in found]
    tasks = [
        partial(
            fine_tune,
            experiment.model(name),
            spare_texts,
            experiment.build / "finetuned" / name,
            epochs=epochs,
            learning_rate=learning_rate,
            seed=experiment.profile.seed,
        )
        for name in (names if tuned else ())
    ]
    directories = dict(zip(names, deal("fine-tune", tasks), strict=False))
    parts = parts_of(experiment, "assumptions")
    tables = []
    for name in names:
        before = TransformersScorer(experiment.model(name))
        after = TransformersScorer(directories[name]) if tuned else None
        scored = score_phases(domains, tuned, before, after, parts / name)
        scored.insert(0, "model", name)
        tables.append(scored)
    counts = [
        (name, len(one.members), len(one.non_members), len(one.spare))
        for name, one in domains.items()
    ]
    return {
        "domains": pd.DataFrame(counts, columns=["domain", "members", "non_members", "spare"]),
        "scored": pd.concat(tables, ignore_index=True),
        "blind": score_baselines(domains, tokenizer, seed=experiment.profile.seed),
    }


def score_baselines(
    domains: Mapping[str, Domain], tokenizer: "PreTrainedTokenizerBase", *, seed: int
) -> pd.DataFrame:
    """Score the texts of each domain with members and non-members without asking a model.

    The rows are those of `contamination.membership.blind.blind_rows`.
    """
    found = [
        blind_rows(
            [tokenizer.decode(ids) for ids in (*domain.members, *domain.non_members)],
            [True] * len(domain.members) + [False] * len(domain.non_members),
            benchmark=READ_HERE,
            split=name,
            rng=random_stream(seed, "blind baselines of domains", name),
        )
        for name, domain in domains.items()
        if domain.members and domain.non_members
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(SCORED))


def score_phases(
    domains: Mapping[str, Domain],
    tuned: Mapping[str, Texts],
    before: Scorer,
    after: Scorer | None,
    parts: Path,
) -> pd.DataFrame:
    """Score the texts of every phase: a row per text and phase.

    Columns are phase, domain, member (in the control: will be one), and each metric of `LABELS`
    that texts of this length have, larger for members.

    Parameters
    ----------
    domains : of `contamination.pretraining.domain_texts.domain_texts`.
    tuned : domain -> texts that were read in fine-tuning; their domains alone are tuned ones.
    before, after : the model before and after fine-tuning; None leaves that phase out.
    parts : folder of what is scored.
    """

    def sides(members: Mapping[str, Texts]) -> list[tuple[str, bool, Texts]]:
        return [
            (name, member, texts)
            for name, domain in domains.items()
            for member, texts in ((True, members.get(name, ())), (False, domain.non_members))
        ]

    read = {name: domain.members for name, domain in domains.items()}
    tables = [_score(before, parts, "pre-training", sides(read))]
    if tuned:
        first = tables[0]
        untouched = first[~first["member"] & first["domain"].isin(set(tuned))]
        later = [(name, True, tuned[name]) for name in tuned]
        tables.append(_score(before, parts, "control", later))
        tables.append(untouched.assign(phase="control"))
    if after is not None:
        tables.append(_score(after, parts, "fine-tuning", sides(tuned)))
    return pd.concat(tables, ignore_index=True)


def _score(
    scorer: Scorer, parts: Path, phase: str, sides: Sequence[tuple[str, bool, Texts]]
) -> pd.DataFrame:
    """Score the texts of all sides (domain, member, texts) in one pass of the model."""
    keys = [(phase, domain, member) for domain, member, texts in sides for _ in texts]
    table = pd.DataFrame(keys, columns=KEYS).astype({"member": bool})
    every = [ids for _, _, texts in sides for ids in texts]
    if not every:
        return table
    length = min(map(len, every))
    short = {f"ppl_{k}" for k in FIRST if k >= length}  # the first token has no score
    columns = [name for name in LABELS if name not in short]
    scores = stored_token_scores(parts / phase, scorer, every, columns)
    return pd.concat([table, scores.reset_index(drop=True)], axis=1)
