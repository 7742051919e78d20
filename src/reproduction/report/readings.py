"""Every number of the report's prose, as text: `variables.yml`.

They are read from the profile, from the manifest or from the tables of `results/tables/`. A
sentence such as "the score misses few" holds for the run that it was written for. So the report
says how many, and these functions count them; a dash stands where a run has measured nothing.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.status import OK
from contamination.tables import MISSING, POOLED, SIGNIFICANT, format_estimate, format_p, read_csv
from reproduction.notebooks.assumptions.measure import LABELS
from reproduction.notebooks.assumptions.tables import CHANCE, MEAN, OURS
from reproduction.notebooks.beyond.tables import AS_PUBLISHED, LONG, SHORT
from reproduction.notebooks.min_k.tables import BESIDE
from reproduction.notebooks.options.tables import ORDER
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.output.published import AUDITED, MEASURED, load_published
from reproduction.run.injection import PLANTINGS
from reproduction.run.null_calibration import format_null_rejections, pooled_null_calibration
from reproduction.run.profile import Architecture, Profile

MANY = 32  # dup_count from which on detection is expected beyond doubt
REHEARSED = "Rehearsal: stand-ins with random weights; these numbers mean nothing."
NEAR = 5.0  # percentage points of AUC; ours, since Fu et al. name no tolerance
Texts = dict[str, str]
rounded = partial(format_estimate, interval=False)


def texts(**values: Any) -> Texts:
    """Write counts with their thousands, truth values as how many there are, NaN as a dash."""
    counts = {k: v.sum() if isinstance(v, pd.Series) else v for k, v in values.items()}
    return {
        key: value if isinstance(value, str) else MISSING if pd.isna(value) else f"{value:,}"
        for key, value in counts.items()
    }


def percent(share: float) -> str:
    """A share in percent, without a zero after the point; a dash for NaN."""
    return rounded(100 * share, digits=1).removesuffix(".0")


def escape_markdown(text: str) -> str:
    """Escape `text` for variables.yml, whose values are one line of markdown.

    Use it for text that this project did not write, such as the name of a processor.
    """
    return re.sub(r"([\\`*_{}\[\]<>#@$^~|!\"'])", r"\\\1", " ".join(text.split()))


def _listed(items: Iterable[Any]) -> str:
    """Join as in prose: a, b and c."""
    *first, last = [escape_markdown(str(item).strip()) for item in items] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def build_variables(
    profile: Profile, manifest: dict[str, Any], results: Path, published: Path
) -> dict[str, Texts]:
    """Collect the numbers of a run, grouped as the report names them.

    Raises InputError if a table of a notebook that ran is missing.
    """
    table, run = partial(read_csv, results), {"run": _run(manifest)}
    if profile.pretraining is None:
        ran = {NOTEBOOKS[name].package for name in profile.notebooks}
        return {name: read_section(name, table) for name in RELEASED if name in ran} | run
    shape = profile.model
    assert isinstance(shape, Architecture)  # else there is no report, as `write_manifest` says
    alpha = profile.notebooks.get("01_canary_eval", {}).get("alpha", SIGNIFICANT)
    canaries = table("canaries")
    corpus, sets, models = manifest["corpus"], manifest["canaries"].values(), manifest["models"]
    return {
        "corpus": texts(**{key: corpus[key] for key in ("documents", "characters", "tokens")})
        | {"packages": _listed(f"{p['package']} {p['version']}" for p in corpus["packages"])},
        "canaries": texts(
            sets=len(sets),
            examples=sum(c["examples"] for c in sets),
            tokens=sum(c["tokens"] for c in sets),
            sources=_listed(profile.corpus.held_out) or "files of the profile",
            counts=_listed(sorted({c["dup_count"] for c in sets})),
        ),
        "model": texts(
            parameters=models["clean"]["parameters"],
            layers=shape.n_layer,
            heads=shape.n_head,
            hidden=str(shape.n_embd),
            context=shape.n_positions,
            vocabulary=profile.corpus.vocabulary,
            training_tokens=models["contaminated"]["tokens"],
            injected_tokens=sum(c["tokens"] * c["dup_count"] for c in sets),
            final_loss_contaminated=f"{models['contaminated']['final_loss']:.2f}",
            final_loss_clean=f"{models['clean']['final_loss']:.2f}",
        ),
        "tests": {
            **{name: str(value) for name, value in asdict(profile.scoring).items()},
            "permutation_floor": format_p(1 / (1 + profile.scoring.whole_set_permutations)),
        },
        "results": read_canaries(canaries, alpha),
        "redrawn": read_redrawn(canaries),
        "mmlu": read_mmlu(table("mmlu_fisher"), table("mmlu_subsets"), published),
        "prefixes": read_short_prefixes(table("power_replicates")),
        "calibration": read_calibration(table("calibration")),
        "failures": read_failures(table("failures")),
        "generated": read_generated(table("generated")),
        "min_k": read_min_k(table("min_k"), canaries, alpha),
        "assumptions": read_assumptions(table("assumptions_within")),
        "options": read_options(table("options")),
    } | run


def _run(manifest: dict[str, Any]) -> Texts:
    """What is said of every run; `rehearsal` is there only where stand-ins were read."""
    seconds = sum(step["seconds"] for step in manifest["steps"].values())
    minutes, hours = f"{seconds / 60:.1f} minutes", f"{seconds / 3600:.1f} hours"
    return {
        "profile": escape_markdown(manifest["profile"]),
        "seed": str(manifest["seed"]),
        "commit": escape_markdown(manifest["commit"]),
        "hardware": escape_markdown(manifest["hardware"]),
        "summed_time": minutes if seconds < 5400 else hours,
        "tokens_scored": f"{manifest['tokens_scored']:,}",
        "python": manifest["python"],
        "torch": escape_markdown(manifest["packages"]["torch"]),
        **({"rehearsal": REHEARSED} if manifest.get("rehearsal") else {}),
    }


# --- of models trained here -----------------------------------------------------------------------


def read_canaries(canaries: pd.DataFrame, alpha: float) -> Texts:
    """What the exact test on shards and the successor test find of the planted sets."""
    rejected = canaries[canaries["holm_p"] <= alpha]
    found = {"alpha": f"{alpha:g}"}
    for prefix, test in (("", "sharded_exact"), ("successor_", "successor")):
        rows = rejected[(rejected["model"] == "contaminated") & (rejected["test"] == test)]
        fewest = rows["dup_count"].min() if len(rows) else "none"
        found |= texts(**{f"{prefix}detected": len(rows), f"{prefix}smallest_detected_dup": fewest})
    exact = canaries[canaries["test"] == "sharded_exact"].set_index("model").sort_values("log10_p")
    many = exact[(exact.index == "contaminated") & (exact["dup_count"] >= MANY)]
    shown = [format_p(row.p, row.log10_p) for row in many.itertuples()]
    return found | texts(
        sets_at_32_or_more=len(many),
        largest_p_at_32_or_more=[MISSING, *shown][-1],
        clean_min_holm_p=format_p(exact.loc[exact.index == "clean", "holm_p"].min()),
        clean_accused=rejected.loc[rejected["model"] == "clean", "dataset"].nunique() or "none",
    )


def read_redrawn(canaries: pd.DataFrame) -> Texts:
    """Percent of the redrawn canonical orders that tests reject, with 95% intervals."""
    pooled = pooled_null_calibration(canaries).set_index(["model", "test"])
    shown = {key: format_null_rejections(row) for key, row in pooled.iterrows()}
    return texts(
        clean=shown.get(("clean", "successor"), MISSING),
        contaminated=shown.get(("contaminated", "successor"), MISSING),
        clean_sharded_t=shown.get(("clean", "sharded_t"), MISSING),
        each=int(canaries["redrawn_orders"].max()),
        orders=int(pooled["redrawn_orders"].max()),
    )


def read_mmlu(combined: pd.DataFrame, subsets: pd.DataFrame, published: Path) -> Texts:
    """Count the subsets that the paper's rule drops; Fisher's p of the others, beside its own."""
    # A run that measures the models of the paper has rows of its own for them.
    combined = combined.query("source == 'published'").set_index("model").loc[AUDITED.values()]
    excluded = subsets.query("source == 'published' and model == 'LLaMA2-7B'")["excluded"]
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    p = {
        f"{before}{key}": f"{value:.3g}"
        for before, column in (("", "p"), ("published_", "published_p"))
        for key, value in zip(AUDITED, combined[column], strict=True)
    }
    return texts(
        subsets_listed=len(excluded),
        subsets_dropped=excluded,
        subsets_kept=~excluded,
        published_kept=text["mmlu_subsets_kept"],
        published_dropped=text["mmlu_subsets_dropped"],
        **p,
    )


def read_short_prefixes(replicates: pd.DataFrame) -> Texts:
    """Name the set whose evidence the successor test loses most with b = 8 instead of 32."""
    whole = replicates[replicates["fraction"] == 1.0]  # all shards, as in the ranking
    means = whole.groupby(["dataset", "test"])["log10_p"].mean().unstack()
    worst = means.loc[(means["successor_8"] - means["successor_32"]).idxmax()]
    signed = {f"with_{b}": f"{worst[f'successor_{b}']:z.1f}".replace("-", "−") for b in (32, 8)}
    return {"set": str(worst.name)} | signed


def read_calibration(calibration: pd.DataFrame) -> Texts:
    """Count intervals of the exact tests off the level; give the range of rates of the others."""
    rows = calibration[calibration["alpha"] == SIGNIFICANT]
    exact = rows[rows["test"].str.startswith("sharded_exact")]
    few = rows[rows["shards"] == rows["shards"].min()].groupby("test")["rate"].max()
    t_test = rows[rows["test"] == "sharded_t"].groupby("scores")["rate"].agg(["min", "max"])
    return texts(
        exact=len(exact),
        exact_above=exact["low"] > SIGNIFICANT,
        exact_below=exact["high"] < SIGNIFICANT,
        anytime=percent(rows.loc[rows["test"] == "anytime", "rate"].max()),
        t_low=percent(t_test.loc["sum", "min"]),
        t_high=percent(t_test.loc["sum", "max"]),
        t_low_tails=percent(t_test.loc["heavy_tailed", "min"]),
        t_high_tails=percent(t_test.loc["heavy_tailed", "max"]),
        fewest_shards=rows["shards"].min(),
        ddof_0=percent(few.get("sharded_t_ddof_0", np.nan)),
    )


def read_failures(failures: pd.DataFrame) -> Texts:
    """Count the orders with a meaning that the clean model and the diagnostics find."""
    clean = failures[failures["model"] == "clean"]
    orders = clean[~clean["order"].isin([AS_PUBLISHED, SHORT, LONG])]
    rejected = orders.loc[10.0 ** orders["log10_p_successor"] <= SIGNIFICANT, "order"]
    return texts(
        orders=len(orders),
        rejected=len(rejected),
        rejected_names="; ".join(rejected) or "none",
        noticed=orders["verdict"] != "quiet",
        compressed=10.0 ** orders["log10_p_compressor"] <= SIGNIFICANT,
    )


def read_generated(generated: pd.DataFrame) -> Texts:
    """Count the sets found by texts and by scores, and give the smallest p of the clean model."""
    found = texts(sets=generated["dataset"].nunique())
    for name, access in {"texts": "generated", "scores": "log-probabilities"}.items():
        rows = generated[generated["access"] == access]
        clean, rejected = rows["model"] == "clean", rows["p"] <= SIGNIFICANT
        found |= texts(
            **{name: rejected & ~clean, f"{name}_clean": format_p(rows.loc[clean, "p"].min())},
            **{f"{name}_fewest": rounded(rows.loc[rejected & ~clean, "dup_count"].min(), digits=0)},
        )
    return found


def read_min_k(min_k: pd.DataFrame, canaries: pd.DataFrame, alpha: float) -> Texts:
    """Compare Min-K% with the tests on the same sets, and say how far it gets at many copies."""
    spans = min_k[(min_k["model"] == "contaminated") & (min_k["score"] == "min_k_20")]
    spans = spans.set_index("dataset")
    tests = canaries[(canaries["model"] == "contaminated") & canaries["test"].isin(BESIDE)]
    proved = tests.groupby("dataset")["holm_p"].min().reindex(spans.index) <= alpha
    # The tuned false positive rate: more spans than that, by the whole interval.
    shown = spans["share_detected_low"] > SIGNIFICANT
    most = spans["dup_count"] == spans["dup_count"].max()
    return texts(
        most_copies=spans["dup_count"].max(),
        share_at_most=percent(spans.loc[most, "share_detected"].mean()),
        heuristic_alone=shown & ~proved,
        tests_alone=proved & ~shown,
    )


def read_assumptions(within: pd.DataFrame) -> Texts:
    """Mean AUCs over domains of the clean model, and how many of Fu's metrics are near chance."""
    means = within[(within["model"] == "clean") & (within["domain"] == MEAN)]
    once, tuned = (
        means[means["phase"] == phase].set_index("metric")["auc_percent"]
        for phase in ("pre-training", "fine-tuning")
    )
    found = {"ppl_read_once": rounded(once.get("loss", np.nan), digits=1)}
    shown = {"ppl": "loss", "mem": "mem_25", "mem_off_by_one": "mem_off_by_one_25"}
    for name, metric in shown.items():
        found[f"{name}_tuned"] = rounded(tuned.get(metric, np.nan), digits=1)
    once = once[~once.index.str.contains("|".join(OURS))]
    if once.empty:
        return found | dict.fromkeys(["metrics", "near", "furthest", "furthest_auc"], MISSING)
    distance = (once - CHANCE).abs()
    furthest = distance.idxmax()
    return found | texts(
        metrics=len(once),
        near=distance <= NEAR,
        furthest=LABELS[furthest],
        furthest_auc=rounded(once[furthest], digits=1),
    )


def read_options(options: pd.DataFrame) -> Texts:
    """What both axes find of each planting at the largest number of copies, and the controls."""
    most = options[options["dup_count"] == options["dup_count"].max()]
    found = {(row.planting, row.test): format_p(row.p, row.log10_p) for row in most.itertuples()}
    names = {"records": ORDER, "options": OPTION_TEST}
    asked = {f"{p}_{name}": (p, test) for p in PLANTINGS for name, test in names.items()}
    lowest = options.loc[options["control_log10_p"].idxmin()]
    return {name: found[key] for name, key in asked.items() if key in found} | texts(
        examples=options["examples"].max(),
        copies=options["dup_count"].max(),
        controls=len(options),
        control_smallest=format_p(lowest["control_p"], lowest["control_log10_p"]),
    )


# --- of models that others have released ----------------------------------------------------------

KINDS = {"model": "models", "dataset": "sets", "subset": "subsets"}  # column -> what it names
VALUES = {"auc": 2, "auc_percent": 1}  # column -> digits of its range


def read_cells(cells: pd.DataFrame) -> Texts:
    """Count the rows of a table, those that were measured, and what these say; all by its columns.

    `tested` have a p-value (after Holm's correction, if there is one), and `rejected` are at most
    0.05 of these; `off` are intervals that leave out chance, `lowest` and `highest` the ends of the
    range of `values`.
    """
    done = cells[cells["status"] == OK]
    begins = {
        name.replace(" ", "_"): cells["status"].str.startswith(name)
        for name in ("failed", "not run", "not asked")
    }
    kinds = {word: done[name].nunique() for name, word in KINDS.items() if name in cells}
    found = texts(cells=len(cells), measured=len(done), **begins, **kinds)
    for name in [name for name in ("holm_p", "p") if name in cells][:1]:
        p = done[name].dropna()
        found |= texts(tested=len(p), rejected=p <= SIGNIFICANT)
    for name, digits in VALUES.items():
        if name in cells:
            values = done[name].dropna()
            low, high = (rounded(end, digits=digits) for end in (values.min(), values.max()))
            found |= texts(values=len(values), lowest=low, highest=high)
    if "auc_low" in cells:
        chance = CHANCE if "auc_percent" in cells else 0.5
        found |= texts(off=(done["auc_low"] > chance) | (done["auc_high"] < chance))
    return found


LEVEL = np.log10(SIGNIFICANT)
COMPARED = "status == 'ok' and unit == 'log10 p'"
SUBSETS = "source == 'measured' and test == @test"  # of `counted_test`
# Section of the report, called as the package of its notebook -> beginning of the names of its
# facts -> the table that they are read from, and which of its rows.
RELEASED: dict[str, dict[str, tuple[str, str]]] = {
    "open_models": {
        "": ("open_models", f"dataset != '{POOLED}'"),
        "quiet_": ("open_models", f"dataset != '{POOLED}' and verdict == 'quiet'"),
    },
    "mmlu": {
        "": ("mmlu_subsets", SUBSETS),
        "dropped_": ("mmlu_subsets", f"{SUBSETS} and excluded == True"),
        "fisher_": ("mmlu_fisher", "source == 'measured'"),
    },
    "wikimia": {"": ("wikimia", "")},
    "assumptions": {
        "": ("assumptions_within", f"domain != '{MEAN}'"),
        "blind_": ("assumptions_blind", ""),
    },
    "papers": {
        "": ("papers", ""),
        "verdict_": ("papers", COMPARED),
        "same_": ("papers", f"{COMPARED} and (ours <= {LEVEL}) == (published <= {LEVEL})"),
    },
}


def read_section(section: str, table: Callable[[str], pd.DataFrame]) -> Texts:
    """Read the facts of a section; `table` opens a table of the run by its name."""
    found: Texts = {}
    for begin, (name, rows) in RELEASED[section].items():
        cells = table(name)
        if "@test" in rows:
            test = counted_test(cells)
            found["test"] = TESTS[test].label.lower()
        read = read_cells(cells.query(rows) if rows else cells)
        found |= {f"{begin}{key}": text for key, text in read.items()}
    if section == "open_models":
        found["redrawn"] = "none in this run"
        if "redrawn_orders" in cells and len(pooled := pooled_null_calibration(cells)):
            each = [
                f"{TESTS[r['test']].label} {format_null_rejections(r)}"
                for _, r in pooled.iterrows()
            ]
            orders = int(pooled["redrawn_orders"].max())
            found["redrawn"] = f"of {orders:,} in each test, percent rejected: {'; '.join(each)}"
    return found


def counted_test(subsets: pd.DataFrame) -> str:
    """Name the test whose p-values of MMLU are counted: the paper's, or the first of the run."""
    asked = subsets.loc[subsets["source"] == MEASURED, "test"].unique()
    return "sharded_t" if "sharded_t" in asked or not len(asked) else str(asked[0])
