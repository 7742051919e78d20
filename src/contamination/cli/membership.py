"""`contamination membership`: scores of single texts, and no guarantee."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from contamination.cli import options as o
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    open_generator,
    open_scorer,
    open_set,
)
from contamination.cli.options import option
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.cli.unused import (
    refuse_swapped,
    refuse_unused_mirror,
    refuse_unused_of_membership,
)
from contamination.errors import InputError
from contamination.membership.columns import COLUMNS, OF_ITEMS, OF_TEXTS, checked

if TYPE_CHECKING:
    import pandas as pd

    from contamination.scoring.contract import Scorer
    from contamination.scoring.generation import Generator
    from contamination.testsets.example_set import ExampleSet
    from contamination.testsets.options import Item

LABELS = {
    "1": True,
    "true": True,
    "member": True,
    "0": False,
    "false": False,
    "non-member": False,
}
# Printed without --all, and all that an argument adds (--reference, --neighbours).
SHOWN = ("loss", "min_k_20", "min_k_pp_20", "zlib", "lowercase")
ADDED = ("reference_difference", "reference_ratio", "neighbour")
# Scores with draws, or with texts that are asked for with a seed.
SEEDED = ("completion", "variation", "slot")
# Units by the name of a score without its number; larger is more likely a member in all
# of them.
UNITS = {
    "loss": "nats per token",
    "ppl": "nats per token",
    "min_k": "nats per token",
    "min_k_pp": "standard deviations",
    "min_prob": "probability",
    "mem": "share of tokens",
    "mem_off_by_one": "share of tokens",
    "entropy": "nats",
    "zlib": "nats per token and byte",
    "lowercase": "ratio",
    "reference_difference": "nats per byte",
    "reference_ratio": "ratio",
    "neighbour": "nats per token",
}
ASKED_UNITS: dict[str, str] = {}
for _units in COLUMNS.values():
    ASKED_UNITS |= _units


def membership(
    model: o.ModelName,
    dataset: o.Dataset,
    reference: Annotated[
        str | None,
        option("A second, smaller model with which MODEL is compared.", group=o.WHAT),
    ] = None,
    neighbours: Annotated[
        int,
        option(
            "Number of changed copies with which each text is compared.",
            group=o.WHAT,
            min=0,
            max=1000,
        ),
    ] = 0,
    asked: Annotated[
        list[str] | None,
        option(
            "Score that needs further prompts, many times as slow: "
            f"{', '.join(OF_TEXTS)}, and of items {', '.join(OF_ITEMS)}; may be repeated.",
            "--score",
            group=o.WHAT,
        ),
    ] = None,
    label: Annotated[
        str | None,
        option("Field that is 1 for members and 0 for non-members.", group=o.WHAT),
    ] = None,
    seed: o.Seed = 0,
    template: o.TemplateText = None,
    field: o.Field = None,
    max_records: o.MaxRecords = None,
    mirror: o.Mirror = None,
    split: o.Split = None,
    data_revision: o.DataRevision = None,
    revision: o.Revision = None,
    precision: o.PrecisionName = "auto",
    attention: o.Attention = None,
    compile: o.Compile = False,
    context: o.Context = None,
    batch_tokens: o.BatchTokens = None,
    trust_remote_code: o.TrustRemoteCode = False,
    endpoint: o.Endpoint = None,
    tokenizer: o.Tokenizer = None,
    concurrency: o.Concurrency = 8,
    max_requests: o.MaxRequests = None,
    timeout: o.Timeout = 120.0,
    api_key_env: o.ApiKeyEnv = "OPENAI_API_KEY",
    every_score: Annotated[
        bool,
        option("Print all scores, not only five of them.", "--all", group=o.OUTPUT),
    ] = False,
    as_json: o.AsJson = False,
    csv: o.CsvFile = None,
) -> None:
    """Score each text of DATASET by how likely MODEL has read it.

    Example: contamination membership my_model texts.jsonl --label member --csv
    scores.csv

    A row per text, a column per membership score (loss, Min-K%, zlib ...), of which
    none proves anything by itself. With --label, also how well each of them separates
    members from the others.
    With --score, scores for which MODEL goes on with a text, fills a gap, or chooses an
    option.
    """
    further = checked(asked, OF_TEXTS + OF_ITEMS) if asked else []
    chosen_set = SetChoice(
        dataset=dataset,
        template=template,
        field=field,
        max_records=max_records,
        mirror=mirror,
        split=split,
        data_revision=data_revision,
    )
    chosen_model = ModelChoice(
        revision=revision,
        precision=precision,
        attention=attention,
        compile=compile,
        context=context,
        batch_tokens=batch_tokens,
        trust_remote_code=trust_remote_code,
        endpoint=endpoint,
        tokenizer=tokenizer,
        concurrency=concurrency,
        max_requests=max_requests,
        timeout=timeout,
        api_key_env=api_key_env,
        reference=reference,
    )
    refuse_swapped(model, dataset)
    refuse_unused_mirror(mirror, [dataset])
    asks_with_seed = any(name in SEEDED for name in further)
    refuse_unused_of_membership(
        seed=seed,
        draws=neighbours > 0 or label is not None or asks_with_seed,
        every_score=every_score,
        as_json=as_json,
    )
    from contamination.scoring.models import label as short_name
    from contamination.testsets.options import items_of

    texts = open_set(chosen_set)
    members = None if label is None else _members(texts, label)
    items = items_of(texts) if set(further) & set(OF_ITEMS) else ()

    from contamination.membership.api import membership_scores
    from contamination.membership.evaluate import evaluate, missing_scores
    from contamination.randomness import random_stream

    scorer = open_scorer(model, chosen_model)
    second = None
    if reference is not None:
        second = open_scorer(reference, chosen_model.of_reference())
    table = membership_scores(
        scorer, texts.examples, reference=second, neighbours=neighbours, seed=seed
    )
    if further:
        generator = _generator(scorer, model, chosen_model)
        table = table.join(_asked_scores(further, scorer, generator, texts.examples, items, seed))
    save_table(table.reset_index(), csv)
    evaluation = None
    if members is not None:
        evaluation = evaluate(table, members, rng=random_stream(seed, "evaluation"))
    missing = missing_scores(table)
    if as_json:
        output = {
            "model": model,
            "dataset": texts.name,
            "dataset_revision": texts.revision,
            "template": texts.template,
            "texts": json_rows(table.reset_index()),
            "without_score": json_rows(missing),
        }
        if evaluation is not None:
            output["evaluation"] = json_rows(evaluation)
        print(json.dumps(output, indent=2))
        return
    shown = list(table.columns) if every_score else _few(table)
    title = f"{len(table):,} texts of {texts.name} under {short_name(model)}"
    if evaluation is None:
        _print_scores(table, shown, title)
    else:
        _print_evaluation(evaluation, shown, title)
    for row in missing.itertuples():
        if row.score in shown:
            say(f"{row.score}: {row.texts:,} texts have no score, since {row.reason}")
    left_out = len(table.columns) - len(shown)
    if left_out:
        say(f"{left_out} more scores: --all")
    say(
        "Larger is more likely a member. Scores carry no guarantee; compare `contamination test`.",
    )
    if csv is not None:
        say(f"scores of each text: {csv}")


def _asked_scores(
    names: Sequence[str],
    scorer: "Scorer",
    generator: "Generator",
    texts: Sequence[str],
    items: Sequence["Item"],
    seed: int,
) -> "pd.DataFrame":
    """Compute the scores of texts and of items that need further prompts."""
    import pandas as pd

    from contamination.membership.asked import item_scores, text_scores

    of_texts = [name for name in names if name in OF_TEXTS]
    of_items = [name for name in names if name in OF_ITEMS]
    tables = []
    if of_texts:
        tables.append(text_scores(of_texts, scorer, generator, texts, seed=seed))
    if of_items:
        tables.append(item_scores(of_items, scorer, generator, items, seed=seed))
    return pd.concat(tables, axis=1)


def _generator(scorer: "Scorer", model: str, choice: ModelChoice) -> "Generator":
    """Return what makes the model of a scorer write."""
    from contamination.scoring.generation import LocalGenerator
    from contamination.scoring.local import TransformersScorer

    if isinstance(scorer, TransformersScorer):
        return LocalGenerator(scorer, model)
    return open_generator(model, choice, asks_letters=False)


def _few(table: "pd.DataFrame") -> list[str]:
    """Return the scores that are printed without --all."""
    shown = {*SHOWN, *ADDED, *ASKED_UNITS}
    return [name for name in table.columns if name in shown]


def _unit(score: str) -> str:
    """Return the unit of a score."""
    units = UNITS | ASKED_UNITS
    if score in units:
        return units[score]
    family, _, _ = score.rpartition("_")
    return UNITS[family]


def _print_scores(table: "pd.DataFrame", shown: Sequence[str], title: str) -> None:
    """Print how each score is spread over the texts that have it."""
    rows: list[tuple[Any, ...]] = []
    for name in shown:
        values = table[name].dropna()
        if values.empty:  # the reason stands below the table
            continue
        low, median, high = values.quantile([0.05, 0.5, 0.95])
        row = (
            name,
            _unit(name),
            f"{low:.4g}",
            f"{median:.4g}",
            f"{high:.4g}",
            len(values),
        )
        rows.append(row)
    columns = ("score", "unit", "5%", "median", "95%", "texts")
    print_table(columns, rows, title=title, text=("unit",))


def _print_evaluation(
    evaluation: "pd.DataFrame",
    shown: Sequence[str],
    title: str,
) -> None:
    """Print how well each score separates members from the others."""
    rows: list[tuple[Any, ...]] = []
    for row in evaluation.itertuples():
        # NaN: the reason stands below the table
        if row.score not in shown or row.auc != row.auc:
            continue
        cells = (
            row.score,
            _unit(row.score),
            f"{row.auc:.3f}",
            f"{row.auc_low:.3f} to {row.auc_high:.3f}",
            f"{row.tpr_at_5_fpr:.3f}",
            row.members,
            row.non_members,
        )
        rows.append(cells)
    columns = (
        "score",
        "unit",
        "AUC",
        "95% interval",
        "TPR at 5%",
        "members",
        "non-members",
    )
    print_table(columns, rows, title=title, text=("unit",))


def _members(texts: "ExampleSet", field: str) -> list[bool]:
    """Return which texts are members by a field; raise InputError for other values."""
    members = list[bool]()
    for number, record in enumerate(texts.records, start=1):
        if field not in record:
            raise InputError(
                f"{texts.name}, record {number} has no field {field!a}", parameter="label"
            )
        value = record[field]
        member = LABELS.get(str(value).strip().lower())
        if member is None:
            raise InputError(
                f"{texts.name}, record {number}: {field!r} is {value!r:.60}: not 1 or 0",
            )
        members.append(member)
    if len(set(members)) < 2:
        raise InputError(
            f"{texts.name}: field {field!r} has one class; give members and others",
        )
    return members
