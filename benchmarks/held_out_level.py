"""The level of the test of held-out records, over 10,000 random divisions of clean records.

    .venv/bin/python benchmarks/held_out_level.py build/laptop

Records are scored once, by both models of a run of `laptop` or by made-up numbers, and divided
10,000 times. Each division is tested as `contamination compare` does, with 999 drawn divisions. No
model has read one side rather than the other, so every rejection is a false one.

- *one kind*: records of one kind.
- *unlike lengths*: records of all kinds, sorted by length before the draw.
- *few records*: six and six.
- *few published*: six of 32.
- *within kinds*: of some kinds most records are published, of others few; `--within` knows.
- *near-duplicates within groups*: four versions of each record, two of them published; `--within`.
- *near-duplicates one by one*: the same records, drawn without regard to their groups.
- *pairs*: each record and its rewording; `--paired`.
- *half of them read*: the contaminated model has read half of the records, on either side.
- *heavy tails*, *ties*, *ties of few records*: made-up scores.

Three draws do not fit the test, and show what it does not cover. *Within kinds, not said* and
*within groups, not said* leave `--within` out. *Whole groups* puts all near-duplicates of a record
on the same side, by a draw of groups.

Writes docs/measurements/held_out_level.csv: a row for each setting, scores, statistic and level,
with the rejections and their Clopper-Pearson interval (95%). `--settings` measures some of them
and leaves the rows of the others.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint
from tqdm import tqdm

from contamination.audit.held_out import DEFAULT_SCORES
from contamination.files import replacing
from contamination.membership.api import membership_scores, word_neighbours
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.statistics.held_out import DEFAULT_STATISTIC, STATISTICS, held_out_test
from contamination.testsets.example_set import make_test_set
from contamination.testsets.records import read_records
from reproduction.run.canaries import KINDS, LEFT

OUT = Path(__file__).parents[1] / "docs" / "measurements" / "held_out_level.csv"
SEED = 20261128
DIVISIONS = 10_000
RESAMPLES = 999
LEVELS = (0.05, 0.01, 0.001)
RECORDS = 32
VERSIONS = 4  # of a record, near-duplicates
GROUPS = RECORDS // VERSIONS
FEW = 6
READ_SET = "question-32"  # of the contaminated model
KEYS = ["setting", "scores", "statistic", "level"]
OF_ALL_STATISTICS = ("heavy tails", "ties")
# Of each model, the settings that are left out, to save time.
LEFT_OUT = {
    "clean": ("half of them read",),
    "contaminated": (
        "few records",
        "few published",
        "within kinds, not said",
        "within groups, not said",
        "whole groups",
    ),
}


@dataclass(frozen=True)
class Setting:
    """Scored records, the draw that divides them, and the strata that the test is told.

    Attributes
    ----------
    scores
        (q, n).
    published
        (n,), one division; the draw mixes its labels.
    groups
        (n,), whole numbers from 0: labels are mixed within them, or among them where
        `whole` groups are drawn.
    strata
        (n,), as told to the test.
    covered
        Whether the null hypothesis of the test holds.
    """

    name: str
    scores: np.ndarray
    published: np.ndarray
    groups: np.ndarray
    strata: np.ndarray
    whole: bool = False
    covered: bool = True

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a division."""
        if self.whole:
            labels = rng.permutation(np.arange(self.groups.max() + 1) % 2 == 0)
            return labels[self.groups]
        labels = self.published.copy()
        for group in range(self.groups.max() + 1):
            places = np.flatnonzero(self.groups == group)
            labels[places] = rng.permutation(labels[places])
        return labels


# --- records --------------------------------------------------------------------------------------


def texts_of(path: Path, kind: str, number: int) -> list[str]:
    """Return the first records of a file as texts."""
    test_set = make_test_set(kind, read_records(path), KINDS[kind].template, kind)
    return list(test_set.examples[:number])


def texts_to_score(corpus: Path) -> dict[str, list[str]]:
    """Return texts of unread records: of one kind, of all kinds, versions, pairs; and read ones."""
    rng = random_stream(SEED, "held-out level, versions")
    of_all: list[str] = []
    for kind in KINDS:
        of_all += texts_of(corpus / LEFT / f"{kind}.jsonl", kind, RECORDS // 4)
    versions: list[str] = []
    for text in texts_of(corpus / LEFT / "medium.jsonl", "medium", GROUPS):
        versions += [text, *word_neighbours(text, VERSIONS - 1, rng=rng)]
    pairs: list[str] = []
    for text in texts_of(corpus / LEFT / "question.jsonl", "question", RECORDS // 2):
        pairs += [text, *word_neighbours(text, 1, rng=rng)]
    read = texts_of(corpus / "canaries" / f"{READ_SET}.jsonl", "question", RECORDS // 2)
    one_kind = texts_of(corpus / LEFT / "question.jsonl", "question", RECORDS)
    return {
        "one kind": one_kind,
        "all kinds": of_all,
        "versions": versions,
        "pairs": pairs,
        "half read": [*one_kind[: RECORDS // 2], *read],
    }


def scores_of(scorer: TransformersScorer, texts: list[str]) -> np.ndarray:
    """Return the default scores of texts, (q, n)."""
    table = membership_scores(scorer, texts, columns=DEFAULT_SCORES)
    return table[list(DEFAULT_SCORES)].to_numpy().T


# --- settings -------------------------------------------------------------------------------------


def alternating(records: int) -> np.ndarray:
    """Return a division that publishes every second record."""
    return np.arange(records) % 2 == 0


def plain(name: str, scores: np.ndarray) -> Setting:
    """Return a setting of one stratum, half of which is published."""
    records = scores.shape[1]
    none = np.zeros(records, dtype=np.intp)
    return Setting(name, scores, alternating(records), none, none)


def of_model(scorer: TransformersScorer, texts: dict[str, list[str]]) -> list[Setting]:
    """Return the settings of records that a model has scored."""
    scored = {name: scores_of(scorer, part) for name, part in texts.items()}
    settings = [plain("one kind", scored["one kind"])]

    all_kinds = scored["all kinds"]
    lengths = [len(text) for text in texts["all kinds"]]
    settings.append(plain("unlike lengths", all_kinds[:, np.argsort(lengths)]))
    spread = np.linspace(0, all_kinds.shape[1] - 1, num=2 * FEW).round().astype(np.intp)
    settings.append(plain("few records", all_kinds[:, spread]))
    none = np.zeros(RECORDS, dtype=np.intp)
    few = np.arange(RECORDS) < FEW
    settings.append(Setting("few published", scored["one kind"], few, none, none))

    kinds = np.repeat(np.arange(len(KINDS)), RECORDS // 4)
    places = np.tile(np.arange(RECORDS // 4), len(KINDS))
    unlike = places < np.where(kinds % 2 == 0, 6, 2)  # of 8
    single = np.zeros(len(kinds), dtype=np.intp)
    settings.append(Setting("within kinds", all_kinds, unlike, kinds, kinds))
    settings.append(
        Setting("within kinds, not said", all_kinds, unlike, kinds, single, covered=False)
    )

    versions = scored["versions"]
    groups = np.repeat(np.arange(GROUPS), VERSIONS)
    half = alternating(RECORDS)
    settings += [
        Setting("near-duplicates within groups", versions, half, groups, groups),
        Setting("near-duplicates one by one", versions, half, none, none),
        Setting("within groups, not said", versions, half, groups, none, covered=False),
        Setting("whole groups", versions, half, groups, none, whole=True, covered=False),
    ]
    twins = np.repeat(np.arange(RECORDS // 2), 2)
    settings.append(Setting("pairs", scored["pairs"], half, twins, twins))
    settings.append(plain("half of them read", scored["half read"]))
    return settings


def made_up() -> list[Setting]:
    """Return the settings of made-up scores, four that depend on each other."""
    rng = random_stream(SEED, "held-out level, made-up scores")
    common = rng.standard_cauchy(size=RECORDS)
    heavy = common + rng.standard_cauchy(size=(4, RECORDS))
    ties = np.rint(rng.normal(size=RECORDS) + rng.normal(size=(4, RECORDS)))
    return [
        plain("heavy tails", heavy),
        plain("ties", ties),
        plain("ties of few records", ties[:, : 2 * FEW]),
    ]


# --- measurement ----------------------------------------------------------------------------------


def measure(setting: Setting, scored_by: str, statistic: str, divisions: int) -> list[dict]:
    """Divide and test; return a row for each level."""
    rng = random_stream(SEED, "held-out level", setting.name, scored_by, statistic)
    p_values = []
    for _ in range(divisions):
        result = held_out_test(
            setting.scores,
            setting.draw(rng),
            strata=setting.strata,
            statistic=statistic,
            resamples=RESAMPLES,
            rng=rng,
        )
        p_values.append(result.p)
    rows = []
    for level in LEVELS:
        rejections = int(np.count_nonzero(np.array(p_values) <= level))
        low, high = proportion_confint(rejections, divisions, method="beta")
        rows.append(
            {
                "setting": setting.name,
                "scores": scored_by,
                "statistic": statistic,
                "records": setting.scores.shape[1],
                "covered": setting.covered,
                "level": level,
                "divisions": divisions,
                "rejections": rejections,
                "rate": rejections / divisions,
                "low": low,
                "high": high,
            }
        )
    return rows


def main() -> None:
    """Measure all settings by the default, and made-up scores by every statistic."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="directory of a finished run of laptop")
    parser.add_argument("--divisions", type=int, default=DIVISIONS)
    parser.add_argument("--settings", nargs="+", help="names of those to measure; default: all")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    work = []
    for setting in made_up():
        for statistic in STATISTICS:
            if statistic == DEFAULT_STATISTIC or setting.name in OF_ALL_STATISTICS:
                work.append((setting, "made up", statistic))
    texts = texts_to_score(chosen.build / "corpus")
    for model, left_out in LEFT_OUT.items():
        scorer = TransformersScorer(chosen.build / "models" / model)
        for setting in of_model(scorer, texts):
            if setting.name not in left_out:
                work.append((setting, model, DEFAULT_STATISTIC))
    if chosen.settings is not None:
        work = [planned for planned in work if planned[0].name in chosen.settings]
    rows = []
    for setting, scored_by, statistic in tqdm(work, mininterval=10):
        rows += measure(setting, scored_by, statistic, chosen.divisions)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    if chosen.settings is not None:
        known = pd.read_csv(chosen.out)
        measured = pd.MultiIndex.from_frame(table[KEYS])
        others = known[~pd.MultiIndex.from_frame(known[KEYS]).isin(measured)]
        table = pd.concat([others, table], ignore_index=True)
    with replacing(chosen.out) as temporary:
        table.to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()
