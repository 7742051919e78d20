"""`contamination compare`: published records against records that were held back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contamination.audit.export import format_of
from contamination.audit.export_sides import FORMATS
from contamination.audit.other_tests import other_tests_in_words
from contamination.cli import options as o
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    check_outputs,
    open_scorer,
    open_set,
    reference_of,
)
from contamination.cli.ending import ExitStatus
from contamination.cli.options import option
from contamination.cli.printing import print_table, say
from contamination.cli.report import say_verdict
from contamination.cli.running import open_control
from contamination.cli.unused import refuse_swapped, refuse_unused_mirror
from contamination.files import check_directory, write_text
from contamination.scoring.models import label, label_control

if TYPE_CHECKING:
    from contamination.audit.comparison import Comparison


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
    within: o.Within = None,
    paired: o.Paired = False,
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
    output: o.OutputFiles = None,
    as_json: o.AsJson = False,
) -> ExitStatus:
    """Test MODEL on published records against held-out ones.

    Example: contamination compare my_model published.jsonl held_out.jsonl --control
    other_model

    H0: which records were published and which were held back was drawn at random, and
    the model depends on the draw only by having read them. No order is needed: this
    finds sets that were shuffled, or read record by record.

    Exit status 1: evidence; or proven, if p is also at most 0.001. 3: the sides differ
    without a model, or nothing can be said. 0: no evidence.
    """
    refuse_swapped(model, suspect)
    refuse_unused_mirror(mirror, [suspect, held_out])
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
        control=control,
        reference=reference_of(control, endpoint),
    )
    check_directory(directory)
    check_outputs(output or [])
    if control is not None:
        label_control(control, model)  # refused before anything is read
    published_set = SetChoice(
        dataset=suspect,
        template=template,
        field=field,
        max_records=max_records,
        mirror=mirror,
    )
    published = open_set(published_set)
    held_out_set = replace(published_set, dataset=held_out, template=published.template, field=None)
    others = open_set(held_out_set)

    from contamination.audit import held_out as comparing
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
    other_model = None
    if control is not None:
        other_model = open_control(control, chosen_model, scorer)
    comparison = comparing.compare(scorer, published, others, request, level=alpha)
    del scorer  # its memory, before the control is loaded
    if control is not None and other_model is not None:
        comparison = comparing.with_control(
            comparison, other_model, published, others, request, label_control(control, model)
        )
    if not processes().is_main_process:
        return ExitStatus.DONE
    result = comparison.as_dict(alpha)
    for path in output or []:
        write_text(path, format_of(path, FORMATS)(result))
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print_comparison(comparison, alpha)
    return ExitStatus(result["verdict"]["status"])


def _print_comparison(comparison: "Comparison", alpha: float) -> None:
    """Print each score, what objects, how many records were read, and the verdict."""
    from contamination.audit.comparison import ASSUMPTION
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
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        say(f"not compared, since the model or a record does not have it: {names}")
    say(f"H0: {ASSUMPTION}", comparison.draw)
    if comparison.blind is not None:
        blind = comparison.blind
        say(f"without a model the sides differ with p = {blind.p:.3g} ({blind.best})")
    if comparison.control is not None:
        control = comparison.control
        say(f"the control {control.model}: p = {control.result.p:.3g}")
    others = comparison.other_tests
    if others:
        say(other_tests_in_words(others))
    verdict = comparison.verdict(alpha)
    if verdict.status == 1:
        say(*read_records(comparison))
    say_verdict(verdict, alpha)
