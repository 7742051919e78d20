"""`contamination test`: one model, one set, a p-value with its controls."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from contamination.audit.request import CHOICES, Request
from contamination.cli import options as o
from contamination.cli.choices import (
    ModelChoice,
    SetChoice,
    TextChoice,
    reference_of,
    sampling_of,
)
from contamination.cli.ending import ExitStatus
from contamination.cli.methods import ByLogProbabilities, ByTexts, Method
from contamination.cli.options import option
from contamination.cli.report import show_result
from contamination.cli.running import (
    audit_models,
    open_models,
    open_set_with_variants,
    print_dry_run,
)
from contamination.cli.test_checks import TestMode, check_options
from contamination.scoring.models import label, label_control


def test(
    model: o.ModelName,
    dataset: o.Dataset,
    alpha: o.Alpha = 0.05,
    control: Annotated[
        str | None,
        option(
            "Control model: one that cannot have read DATASET. It takes the same "
            "tests; if its p is small as well, the p of MODEL is no evidence.",
            group=o.WHAT,
            metavar="MODEL",
        ),
    ] = None,
    tests: o.Tests = None,
    axis: o.TestedAxis = "order",
    shards: o.Shards = None,
    permutations: o.Permutations = 25,
    order: o.OrderOfRecords = "published",
    seed: o.Seed = 0,
    stop: Annotated[
        bool,
        option(
            "Score shard by shard, and stop once --alpha is reached.",
            "--stop",
            group=o.WHAT,
        ),
    ] = False,
    seal: Annotated[
        Path | None,
        option(
            "The seal.json of a sealed set, all of which is then tested.",
            group=o.WHAT,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        option("The author's key.json, which proves the seal.", group=o.WHAT),
    ] = None,
    held_out: Annotated[
        Path | None,
        option(
            "The author's held_out.jsonl, with the records that the key has held back. "
            "The published ones are compared with them; an endpoint is sent both.",
            group=o.WHAT,
        ),
    ] = None,
    access: Annotated[
        o.AccessName,
        option(
            "What the model gives: log-probabilities, or only text. With text it "
            "continues each record; with --axis options it is asked which arrangement "
            "is the published one.",
            group=o.WHAT,
        ),
    ] = "logprobs",
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
    quiz: Annotated[
        bool,
        option(
            "With --access generate: ask which of four records comes next.",
            "--quiz",
            group=o.GENERATION,
        ),
    ] = False,
    samples: Annotated[
        int,
        option(
            "With --access generate: number of texts for each record.",
            group=o.GENERATION,
        ),
    ] = 16,
    tokens: Annotated[
        int | None,
        option(
            "Number of tokens of a text; default: 16, and 4 for the answer to a quiz.",
            group=o.GENERATION,
        ),
    ] = None,
    temperature: Annotated[
        float, option("Temperature at which texts are sampled.", group=o.GENERATION)
    ] = 0.8,
    price_in: Annotated[
        float | None,
        option(
            "Price of a million tokens read, for --dry-run.",
            group=o.GENERATION,
            min=0,
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        option(
            "Price of a million tokens written, for --dry-run.",
            group=o.GENERATION,
            min=0,
        ),
    ] = None,
    arrangements: o.Arrangements = 24,
    keep_answer: o.KeepAnswer = False,
    drawn: o.Drawn = False,
    answer: o.Answer = None,
    options: o.OptionFields = None,
    other: o.Other = None,
    directory: o.StoreDirectory = Path("contamination-stores"),
    as_json: o.AsJson = False,
    output: o.OutputFiles = None,
    dry_run: o.DryRun = False,
) -> ExitStatus:
    """Test whether MODEL has seen DATASET in its published order.

    Example: contamination test my_model my_set.jsonl

    The result is a p-value. Small p: the model prefers the published order, and chance is not a
    plausible reason. Exit status 0: no evidence. 1: evidence, since p is at most --alpha after
    Holm's correction over the tests asked for, and neither the order itself nor a control explains
    it; proven, if the corrected p is at most 0.001 as well and the order is quiet or was drawn. 3:
    the order is no evidence here, or nothing can be said. With --axis both one p decides, of both
    axes together; without --control, that of the order of records, uncorrected.
    """
    chosen_set = SetChoice(
        dataset=dataset,
        template=template,
        field=field,
        max_records=max_records,
        mirror=mirror,
        split=split,
        data_revision=data_revision,
        answer=answer,
        options=options,
        other=other,
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
        control=control,
        reference=reference_of(control, endpoint),
    )
    text = TextChoice(
        quiz=quiz,
        samples=samples,
        tokens=tokens,
        temperature=temperature,
        price_in=price_in,
        price_out=price_out,
    )
    request = Request(
        tests=tests,
        shards=shards,
        permutations=permutations,
        axis=axis,
        arrangements=arrangements,
        keep_answer=keep_answer,
        drawn=drawn,
        order_drawn=order == "drawn",
        seed=seed,
        directory=directory,
        name=label(model),
    )
    writes = access == "generate"
    sealed = seal is not None or key is not None
    mode = TestMode(
        sealed=sealed,
        held_out=held_out is not None,
        control=control is not None,
        stop=stop,
        dry_run=dry_run,
        writes=writes,
    )
    check_options(
        model,
        chosen_set,
        chosen_model,
        text,
        request,
        mode,
        output=output or [],
    )
    if sealed:
        from contamination.cli.test_sealed import test_sealed

        return test_sealed(
            model,
            request,
            chosen_set,
            chosen_model,
            seal=seal,
            key=key,
            held_out=held_out,
            alpha=alpha,
            text=text if writes else None,
            output=output or [],
            as_json=as_json,
            dry_run=dry_run,
        )
    names = [model]
    requests = [request]
    if control is not None:
        names.append(control)
        requests.append(replace(request, name=label_control(control, model)))

    examples, variants = open_set_with_variants(
        chosen_set,
        request,
        arrangements=CHOICES if writes else arrangements,
    )
    method: Method
    if writes:
        method = ByTexts(
            chosen_model,
            examples,
            variants,
            sampling=sampling_of(text, axis),
            next_record=quiz,
            alpha=alpha,
        )
    else:
        stop_at = alpha if stop else None
        method = ByLogProbabilities(chosen_model, examples, variants, stop_at=stop_at)

    from contamination.scoring.processes import processes

    first_process = processes().is_main_process
    if writes and not first_process:  # the first process alone has texts written
        return ExitStatus.DONE
    opened = open_models(names, requests, method)
    if dry_run:
        print_dry_run(opened, method, text if writes else None, as_json=as_json)
        return ExitStatus.DONE
    audit = audit_models(opened, method)
    if not first_process:
        return ExitStatus.DONE
    return show_result(audit, alpha, output=output or [], as_json=as_json)
