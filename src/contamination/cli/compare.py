"""`contamination compare`: published records against records that were held back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.cli import options as o
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    check_written,
    open_scorer,
    open_set,
)
from contamination.cli.ending import ExitStatus
from contamination.cli.hints import refuse_swapped
from contamination.cli.options import option
from contamination.cli.printing import print_table, say
from contamination.files import check_directory, write_text

if TYPE_CHECKING:
    from contamination.audit.held_out import Comparison


def compare(
    model: o.ModelName,
    suspect: Annotated[
        str, typer.Argument(help="Published records, as DATASET of `contamination test`.")
    ],
    held_out: Annotated[
        str, typer.Argument(help="Records that a random draw held back, in the same layout.")
    ],
    control: Annotated[
        str | None,
        option("Model that cannot have read either side; it may object.", group=o.WHAT),
    ] = None,
    within: Annotated[
        str | None,
        option("Field within whose values the sides were drawn, such as source.", group=o.WHAT),
    ] = None,
    paired: Annotated[
        bool,
        option(
            "State that record i of both files is a pair, of which one was drawn.",
            "--paired",
            group=o.WHAT,
        ),
    ] = False,
    scores: Annotated[
        list[str] | None,
        option(
            "Membership score to compare; may be repeated. Choose before you look. "
            "Default: min_k_20, loss, zlib and min_k_pp_20.",
            "--score",
            group=o.WHAT,
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[
        int,
        option(
            "Random divisions with which the real one is compared; no p is below 1 / (N + 1).",
            group=o.WHAT,
            min=1,
        ),
    ] = 99_999,
    alpha: o.Alpha = 0.05,
    seed: o.Seed = 0,
    template: o.TemplateText = None,
    field: o.Field = None,
    max_records: o.MaxRecords = None,
    mirror: o.Mirror = None,
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
    directory: o.StoreDirectory = Path("contamination-stores"),
    output: Annotated[
        Path | None, option("File to write the result to, as JSON.", group=o.OUTPUT)
    ] = None,
    as_json: o.AsJson = False,
) -> ExitStatus:
    """Test MODEL on published records against held-out ones.

    Example: contamination compare my_model published.jsonl held_out.jsonl --control
    other_model

    H0: which records were published and which were held back was drawn at random, and
    the model depends on the draw only by having read them. No order is needed: this
    finds sets that were shuffled, or read record by record.

    Exit status 1: evidence, or proven if p is at most 0.001 as well. 3: the sides
    differ without a model, or nothing can be said. 0: no evidence.
    """
    check_written([output], [model, suspect, held_out, control])
    refuse_swapped(model, suspect)
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
    )
    check_directory(directory)
    published_set = SetChoice(
        dataset=suspect,
        template=template,
        field=field,
        max_records=max_records,
        mirror=mirror,
    )
    published = open_set(published_set)
    others = open_set(replace(published_set, dataset=held_out))

    from contamination.audit import held_out as comparing
    from contamination.scoring.models import label
    from contamination.scoring.processes import processes

    request = comparing.SidesRequest(
        scores=tuple(scores or comparing.DEFAULT_SCORES),
        within=within,
        paired=paired,
        resamples=resamples,
        seed=seed,
        directory=directory,
        name=label(model),
    )
    scorer = open_scorer(model, chosen_model)
    comparison = comparing.compare(scorer, published, others, request, level=alpha)
    del scorer  # its memory, before the control is loaded
    if control is not None:
        other_model = open_scorer(control, ModelChoice())
        comparison = comparing.with_control(
            comparison, other_model, published, others, request, label(control)
        )
    if not processes().is_main_process:
        return ExitStatus.DONE
    result = comparison.as_dict(alpha)
    text = json.dumps(result, indent=2)
    if output is not None:
        write_text(output, text + "\n")
    if as_json:
        print(text)
    else:
        _print_comparison(comparison, alpha, comparing.ASSUMPTION)
    return ExitStatus(result["verdict"]["status"])


def _print_comparison(comparison: "Comparison", alpha: float, assumption: str) -> None:
    """Print each score, what objects, how many records were read, and the verdict."""
    from contamination.audit.text_report import read_records

    result = comparison.result
    rows = []
    for name, p in zip(result.names, result.marginal_p, strict=True):
        rows.append((name, f"{comparison.aucs[name]:.3f}", f"{p:.3g}"))
    rows.append(("all together", "", f"{result.p:.3g}"))
    print_table(
        ("score", "AUC", "p"),
        rows,
        title=f"Has {comparison.model} read {comparison.suspect}? {result.published:,} published "
        f"records, {result.held_out:,} held out",
    )
    say(f"H0: {assumption}")
    if comparison.blind is not None:
        blind = comparison.blind
        say(f"without a model the sides differ with p = {blind.p:.3g} ({blind.best})")
    if comparison.control is not None:
        control = comparison.control
        say(f"the control {control.model}: p = {control.result.p:.3g}")
    verdict = comparison.verdict(alpha)
    if verdict.status == 1:
        say(*read_records(comparison))
    say(f"verdict at {alpha:g}: {verdict}")
