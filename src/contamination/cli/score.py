"""`contamination score`: log-probabilities into the stores that the tests need."""

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.audit.request import Request
from contamination.cli import options as o
from contamination.cli.choices import ModelChoice, SetChoice
from contamination.cli.methods import ByLogProbabilities
from contamination.cli.report import print_cost
from contamination.cli.running import (
    open_models,
    open_set_with_variants,
    print_dry_run,
    print_requests,
)
from contamination.cli.unused import (
    refuse_swapped,
    refuse_unused,
    refuse_unused_fields,
    refuse_unused_mirror,
)
from contamination.files import check_directory
from contamination.scoring.models import label

if TYPE_CHECKING:
    from contamination.audit.result import Audit


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
    (scored,) = opened
    audit = method.score(scored.model, request)
    print_requests(scored, method)
    if not processes().is_main_process:
        return
    if as_json:
        print(json.dumps(_described(audit), indent=2))
    else:
        print_cost(audit)


def _described(audit: "Audit") -> dict[str, Any]:
    """Return what was scored, for JSON: the names are those of a result (`Audit.as_dict`)."""
    from contamination.audit.result import IDENTITY

    described: dict[str, Any] = {name: getattr(audit.header, name) for name in IDENTITY}
    described["version"] = version("contamination")
    described["precision"] = audit.precision
    described["plan"] = asdict(audit.plan)
    del described["plan"]["measured"]
    described["stores"] = [str(path) for path in audit.stores]
    for name in ("tokens_scored", "seconds", "noise"):
        described[name] = getattr(audit, name)
    return described
