"""`contamination score`: log-probabilities into the stores that the tests need."""

import json
from pathlib import Path

from contamination.audit.request import Request
from contamination.cli import options as o
from contamination.cli.choices import ModelChoice, SetChoice
from contamination.cli.methods import ByLogProbabilities
from contamination.cli.report import print_cost
from contamination.cli.running import (
    audit_models,
    open_models,
    open_set_with_variants,
    print_dry_run,
)
from contamination.cli.unused import (
    refuse_swapped,
    refuse_unused,
    refuse_unused_fields,
    refuse_unused_mirror,
)
from contamination.files import check_directory
from contamination.scoring.models import label

# Of the JSON of a test, what scoring alone does not have.
TESTED = ("schema", "alpha", "verdict", "results")


def score(
    model: o.ModelName,
    dataset: o.Dataset,
    tests: o.Tests = None,
    axis: o.TestedAxis = "order",
    shards: o.Shards = None,
    permutations: o.Permutations = 25,
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
    arrangements: o.Arrangements = 24,
    keep_answer: o.KeepAnswer = False,
    drawn: o.Drawn = False,
    answer: o.Answer = None,
    options: o.OptionFields = None,
    other: o.Other = None,
    directory: o.StoreDirectory = Path("contamination-stores"),
    as_json: o.AsJson = False,
    dry_run: o.DryRun = False,
) -> None:
    """Store the log-probabilities that tests need, without testing.

    Example: contamination score my_model my_set.jsonl --dry-run
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
    )
    refuse_swapped(model, dataset)
    check_directory(directory)
    request = Request(
        tests=tests,
        shards=shards,
        permutations=permutations,
        axis=axis,
        arrangements=arrangements,
        keep_answer=keep_answer,
        drawn=drawn,
        seed=seed,
        directory=directory,
        name=label(model),
    )
    refuse_unused(request)
    refuse_unused_fields(chosen_set, request)
    refuse_unused_mirror(mirror, [dataset])
    examples, variants = open_set_with_variants(
        chosen_set,
        request,
        arrangements=arrangements,
    )

    from contamination.scoring.processes import processes

    method = ByLogProbabilities(chosen_model, examples, variants)
    opened = open_models([model], [request], method)
    if dry_run:
        print_dry_run(opened, method, None, as_json=as_json)
        return
    audit = audit_models(opened, method)
    if not processes().is_main_process:
        return
    if as_json:
        described = audit.as_dict()
        for name in TESTED:
            del described[name]
        print(json.dumps(described, indent=2))
    else:
        print_cost(audit)
