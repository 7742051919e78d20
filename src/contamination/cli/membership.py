"""`contamination membership`: scores of single texts, and no guarantee."""

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

from contamination.cli.hints import refuse_swapped
from contamination.cli.options import (
    AsJson,
    CsvFile,
    ScoringOptions,
    Seed,
    add_options,
    option,
)
from contamination.cli.printing import json_rows, print_table, save_table, say
from contamination.errors import InputError

if TYPE_CHECKING:
    from contamination.testsets.example_set import ExampleSet

LABELS = {"1": True, "true": True, "member": True, "0": False, "false": False, "non-member": False}


@add_options
def membership(
    options: ScoringOptions,
    reference: Annotated[str | None, option("A second, smaller model as a yardstick.")] = None,
    neighbours: Annotated[int, option("Neighbours to compare a text with.", min=0, max=1000)] = 0,
    label: Annotated[str | None, option("Field that is 1 for members, 0 for others.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> None:
    """Score each text of DATASET by how likely MODEL was trained on it.

    A row per text, a column per membership score (loss, Min-K%, zlib ...), of which none proves
    anything by itself. With --label, also how well each of them separates members from the others.
    """
    refuse_swapped(options.model, options.dataset)
    texts = options.load(options.dataset)
    members = _members(texts, label) if label is not None else None

    from contamination.membership.api import membership_scores
    from contamination.membership.evaluate import evaluate, missing_scores
    from contamination.randomness import random_stream

    own = dataclasses.replace(options, revision=None, context=None, endpoint=None, tokenizer=None)
    table = membership_scores(
        options.open(options.model),
        texts.examples,
        reference=own.open(reference) if reference is not None else None,
        neighbours=neighbours,
        seed=seed,
    )
    save_table(table.reset_index(), csv)
    rng = random_stream(seed, "evaluation")
    judged = None if members is None else evaluate(table, members, rng=rng)
    if as_json:
        output = {
            "model": options.model,
            "dataset": texts.name,
            "dataset_revision": texts.revision,
            "template": texts.template,
            "texts": json_rows(table.reset_index()),
            "without_score": json_rows(missing_scores(table)),
            **({} if judged is None else {"evaluation": json_rows(judged)}),
        }
        print(json.dumps(output, indent=2))
        return
    if judged is None:
        columns = ["score", "5%", "median", "95%", "texts"]
        shown = table.quantile([0.05, 0.5, 0.95]).map("{:.4g}".format).T.assign(n=table.count())
        rows = shown.itertuples(name=None)
    else:
        columns = ["score", "AUC", "95% interval", "TPR at 5%", "members", "non-members"]
        rows = (
            (
                *(row.score, f"{row.auc:.3f}", f"{row.auc_low:.3f} to {row.auc_high:.3f}"),
                *(f"{row.tpr_at_5_fpr:.3f}", row.members, row.non_members),
            )
            for row in judged.itertuples()
        )
    print_table(columns, rows, title=f"{len(table):,} texts of {texts.name} under {options.model}")
    for row in missing_scores(table).itertuples():
        say(f"{row.score}: {row.texts:,} texts have no score, since {row.reason}")
    say("Larger is more likely a member. Scores carry no guarantee; compare `contamination test`.")
    if csv is not None:
        say(f"scores of each text: {csv}")


def _members(texts: "ExampleSet", field: str) -> list[bool]:
    given = [record.get(field) for record in texts.records]
    members = [LABELS.get(str(value).strip().lower()) for value in given]
    if None in members:
        number = members.index(None)
        raise InputError(
            f"{texts.name}, record {number}: {field!r} is {given[number]!r}: not 1 or 0"
        )
    if len(set(members)) < 2:
        raise InputError(f"{texts.name}: field {field!r} has one class; give members and others")
    return [bool(member) for member in members]
