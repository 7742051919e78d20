"""`contamination seal`, `audit-logs`, `test --seal`: a set whose order a secret key draws."""

import dataclasses
import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contamination.audit.battery import ITEM_TESTS
from contamination.audit.request import Request
from contamination.cli.audit import print_cost, print_plans, show_result
from contamination.cli.options import (
    AnswerFields,
    AsJson,
    CsvFile,
    DataOptions,
    OptionsFields,
    OtherFields,
    TestedOptions,
    add_options,
    option,
    template_of,
)
from contamination.cli.printing import print_table, save_table, say
from contamination.errors import InputError
from contamination.files import check_directory
from contamination.testsets.example_set import Declared

if TYPE_CHECKING:
    from contamination.audit.verdict import Audit
    from contamination.seal.files import SealedSet, SealFiles

DEFAULT_LEVEL = 0.05
# What the seal states, and no auditor chooses after the draw.
STATED = [
    field.name
    for field in (*dataclasses.fields(DataOptions), *dataclasses.fields(Request))
    if field.name not in ("directory", "name")
]


@dataclass(frozen=True, kw_only=True)
class SealOptions:
    """Which seal is meant, and what proves it."""

    seal: Annotated[Path, option("The seal.json that was published with the set.")]
    key: Annotated[Path, option("The author's key.json.")]


def seal(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MY_SET",
            help="The set, in any order: .jsonl, .json, .csv, .parquet or .txt. With --signature, "
            "or --stamp alone, the directory that was written.",
        ),
    ],
    out: Annotated[Path | None, option("New directory, of `public` and `private`.")] = None,
    template: Annotated[
        str | None,
        option(
            "How an auditor turns a record into text: by name, or with {field}; default: the field "
            "`text`. It has to show options and wordings."
        ),
    ] = None,
    axis: Annotated[
        Literal["order", "both"],
        option("Permute the order of records alone, or the options of items as well."),
    ] = "both",
    answer: AnswerFields = None,
    options: OptionsFields = None,
    other: OtherFields = None,
    wordings_of: Annotated[str | None, option("Field that one of its `wordings` fills.")] = None,
    answers: Annotated[
        str | None, option("Field that one of its `answers` fills, all of which are right.")
    ] = None,
    name: Annotated[str | None, option("Name of the benchmark; default: that of the file.")] = None,
    date: Annotated[
        datetime.datetime | None,
        option("Date in the seal; default: today (UTC).", formats=["%Y-%m-%d"]),
    ] = None,
    tests: Annotated[list[str] | None, option("Test of the order of records.", "--test")] = None,
    shards: Annotated[int | None, option("Shards of that test.")] = None,
    permutations: Annotated[int, option("Shuffled orderings of each shard.")] = 25,
    arrangements: Annotated[int, option("Compared orders of the options.")] = 24,
    alpha: Annotated[float, option("Level of the test of all parts together.")] = DEFAULT_LEVEL,
    commit: Annotated[
        bool, option("Commit first: the beacon's signature of a later round ends it.", "--commit")
    ] = False,
    beacon_round: Annotated[
        int | None, option("Round of drand's quicknet; default: the first in a day.", "--round")
    ] = None,
    signature: Annotated[str | None, option("Signature of that round: draw at last.")] = None,
    stamp: Annotated[bool, option("Request a time stamp, now or later.", "--stamp")] = False,
    tsa: Annotated[str | None, option("URL of who is to give it.")] = None,
) -> None:
    """Seal MY_SET: draw its order by a secret key, and commit to that.

    Whether a model has read the published set can then be tested without an assumption about its
    order (`contamination test --seal`). With --commit nobody can choose the key, the author
    included. Nothing is written over, and the key is not shown.
    """
    from contamination.seal.beacon import round_at, time_of, url_of
    from contamination.seal.files import draw_committed, seal_file

    if signature is not None:
        if out is not None or commit or stamp:
            raise InputError("--signature ends what --commit began: give its directory alone")
        return _print_sealed(draw_committed(file, signature))
    if tsa is not None and not stamp:
        raise InputError("--tsa goes with --stamp: give both")
    if stamp and out is None and file.is_dir():
        return _stamp(file, tsa)
    if out is None:
        raise InputError("--out is missing: name a new directory")
    if beacon_round is not None and not commit:
        raise InputError("--round goes with --commit: give both")
    if commit and beacon_round is None:
        beacon_round = round_at(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1))
    stated = {
        "name": name,
        "date": date and date.date(),
        "template": template_of(template),
        "options": axis == "both",
        "declared": Declared(tuple(answer or ()), tuple(options or ()), tuple(other or ())),
        "wordings_of": wordings_of,
        "answers_of": answers,
        "tests": tuple(tests) if tests else None,
        "shards": shards,
        "permutations": permutations,
        "arrangements": arrangements,
        "level": alpha,
        "beacon_round": beacon_round,
    }
    given = {field: value for field, value in stated.items() if value is not None}
    files = seal_file(file, out, **given)
    if beacon_round is None:
        _print_sealed(files)
    else:
        say(
            f"publish {files.commitment} before {time_of(beacon_round):%Y-%m-%d %H:%M:%S} UTC, "
            "where a date can be proved: it is the one commitment of that name",
            f"after that, take `signature` from {url_of(beacon_round)} and run: contamination "
            f"seal {files.directory} --signature SIGNATURE",
            f"keep {files.key} to yourself, and a second copy elsewhere",
            wrap=False,
        )
    return _stamp(files.directory, tsa) if stamp else None


def _stamp(directory: Path, tsa: str | None) -> None:
    from contamination.seal.stamp import stamp

    files = stamp(directory, tsa)
    done = f"stamped: publish {files.token} with the seal"
    say(f"have {files.request} stamped, now or later (--tsa)" if tsa is None else done, wrap=False)


def verify_sealed(
    published: Path, seal: Path, key: Path, date: Path | None, ca: Path | None
) -> None:
    """Verify a sealed set without a model: the key draws this set and this seal, byte by byte."""
    from contamination.seal.audit import guarantee
    from contamination.seal.beacon import time_of
    from contamination.seal.files import verify as verify_files
    from contamination.seal.stamp import stamped_at

    if (date is None) != (ca is None):
        raise InputError("--date and --ca go together: give the time stamp and the certificate")
    found = verify_files(published, seal, key)
    told = [
        f"verified: {published} and {seal} are what {key} draws",
        _described(found),
        guarantee(found.seal),
    ]
    if date is not None and ca is not None:
        time, ahead = stamped_at(date, found.seal.stamped, ca), found.seal.beacon_round
        line = f"stamped: the commitment existed at {time:%Y-%m-%d %H:%M:%S} UTC, as {ca} vouches"
        if ahead is not None:
            line += f"; that is {'before' if time < time_of(ahead) else 'NOT before'} the round"
        told.append(line)
    say(*told, wrap=False)


def _described(sealed: "SealedSet") -> str:
    """Say what was verified, in one line."""
    from contamination.seal.draws import LISTS

    drawn = [f"the order of {len(sealed.variants):,} records"]
    if sealed.moving:
        drawn.append(f"the options of {sealed.moving:,} items")
    listed = {word: sealed.listed(what) for what, word in LISTS.items()}
    drawn += [f"the {word} of {count:,} records" for word, count in listed.items() if count]
    return (
        f"the key drew {', '.join(drawn)}; dated {sealed.seal.date} by their author, commitment "
        f"{sealed.seal.commitment}"
    )


def _print_sealed(files: "SealFiles") -> None:
    from contamination.seal.audit import EFFECTS, POWER, guarantee, records_needed
    from contamination.seal.files import verify

    sealed = verify(files.published, files.seal, files.key)
    seal = sealed.seal
    say(
        f"sealed: {_described(sealed)}",
        f"publish {files.published} and {files.seal}, where a date can be proved",
        f"keep {files.key} to yourself, and a second copy elsewhere: nothing can be tested "
        "without it",
        guarantee(seal),
        wrap=False,
    )
    variants = {"options": seal.arrangements} if seal.options else {}
    if sealed.listed("wordings"):
        variants["wordings"] = max(len(one.given("wordings")) for one in sealed.variants)
    if variants:
        print_table(
            ("effect, sd", *(f"{what}: {count} variants" for what, count in variants.items())),
            [
                (sd, *(records_needed(sd, count, level=seal.level) for count in variants.values()))
                for sd in EFFECTS
            ],
            title=f"Records that find a model with power {POWER:.0%} at {seal.level:g}",
        )


# --- contamination audit-logs ---------------------------------------------------------------------


@add_options
def audit_logs(
    options: SealOptions,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOGS...",
            help="Logs of lm-evaluation-harness (samples_*.jsonl), Inspect (.eval), lighteval "
            "(details_*.parquet) or HELM (scenario_state.json, display_predictions.json), or a "
            "table of `id`, `answer` and `model`.",
        ),
    ],
    as_json: AsJson = False,
    csv: CsvFile = None,
) -> None:
    """Test every model of LOGS by its answers to a sealed set, without the model.

    Small p: of several right answers the model names the published one too often for chance. Exit
    status 1 if anything is proven after Holm's correction over all models, else 3 if nothing can be
    said of a model, else 0.
    """
    from contamination.seal.audit import guarantee
    from contamination.seal.files import verify
    from contamination.seal.logs import audit_logs as audit
    from contamination.testsets.logs import read_log

    sealed = verify(None, options.seal, options.key)
    level = sealed.seal.level
    found = audit(sealed, (one for path in logs for one in read_log(path)))
    rows = [dataclasses.asdict(one) | {"conclusion": one.conclusion(level)} for one in found]
    if csv is not None:
        import pandas as pd

        save_table(pd.DataFrame(rows), csv)
    if as_json:
        told = {"seal": sealed.seal.model_dump(mode="json"), "guarantee": guarantee(sealed.seal)}
        print(json.dumps(told | {"models": rows}, indent=2))
    else:
        print_table(
            ("model", "asked", "named", "hits", "known ≥", "p", "p (Holm)", "verdict"),
            (
                (
                    *(one.model, one.records, one.admissible, one.hits, one.known_at_least),
                    *(f"{one.p:.2g}", f"{one.holm_p:.2g}", one.conclusion(level)),
                )
                for one in found
            ),
            title=f"Which models know what the key of {sealed.seal.name} drew?",
            text=("verdict",),
        )
        say(f"verified: {_described(sealed)}", guarantee(sealed.seal))
    conclusions = {row["conclusion"] for row in rows}
    raise typer.Exit(1 if "proven" in conclusions else 3 * ("cannot say" in conclusions))


# --- contamination test --seal --------------------------------------------------------------------


def test_sealed(options: TestedOptions, seal: Path | None, key: Path | None, alpha: float) -> None:
    """Verify seal, key and set, and test as stated; exit as `test` does, by all parts together."""
    sealed = _verified(options, seal, key)
    if alpha not in (DEFAULT_LEVEL, sealed.seal.level):
        raise InputError(f"--alpha: the seal states the level {sealed.seal.level:g}; leave it out")
    check_directory(options.directory)

    if options.access == "generate":
        from contamination.cli.generated import run_sealed
        from contamination.seal.audit import NOT_STATED

        if (written := run_sealed(options, sealed)) is not None:
            _conclude(written, sealed, (NOT_STATED,), options)
        return

    from contamination.scoring.processes import processes
    from contamination.seal.audit import audit_sealed, sealed_work

    scorer = options.open(options.model)
    work, left_out = sealed_work(scorer, sealed, options.directory, options.name)
    first_process = processes().is_main_process
    if options.dry_run:
        if first_process:
            print_plans({options.model: work.plan}, options.as_json)
        return
    audit = audit_sealed(work, sealed.seal.level)
    if options.endpoint is not None:
        print(scorer.summary(), file=sys.stderr)  # type: ignore[attr-defined]
    if first_process:
        _conclude(audit, sealed, left_out, options)


def _conclude(
    audit: "Audit", sealed: "SealedSet", left_out: Sequence[str], options: TestedOptions
) -> None:
    """Print what was found, and exit by it."""
    from contamination.seal.audit import NOT_CLAIMED, guarantee

    level = sealed.seal.level
    found = {
        "seal": sealed.seal.model_dump(mode="json"),
        "guarantee": guarantee(sealed.seal),
        "not_claimed": [*NOT_CLAIMED, *left_out],
    }

    def show() -> None:
        _print_tested(audit, sealed, left_out)
        say(f"verdict at {level:g}: {audit.verdict(level)}")

    show_result(audit.as_dict(level) | found, options, show)


def _verified(options: TestedOptions, seal: Path | None, key: Path | None) -> "SealedSet":
    """Verify a sealed set, before torch is imported."""
    if seal is None:
        raise InputError("--key goes with --seal: give the seal.json that was published, too")
    if key is None:
        raise InputError(f"--seal {seal} alone proves nothing of the order: give the --key as well")
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    for name in STATED:
        if getattr(options, name) != defaults[name]:
            typed = "--test" if name == "tests" else f"--{name.replace('_', '-')}"
            raise InputError(f"{typed}: the seal states how the set is tested; leave {typed} out")

    from contamination.seal.files import verify

    return verify(Path(options.dataset), seal, key)


def _print_tested(audit: "Audit", sealed: "SealedSet", left_out: Sequence[str]) -> None:
    """Print the p-value of each part and of all, what they rest on, and what they do not say."""
    from contamination.seal.audit import NOT_CLAIMED, WORDINGS_TEST, guarantee

    assert audit.joint is not None
    kinds = dict.fromkeys(ITEM_TESTS, "items") | {WORDINGS_TEST: "records"}
    rows = [
        (
            each.test,
            f"{each.shards} {kinds.get(each.test, 'shards')}",
            getattr(each, "known_at_least", ""),
        )
        for each in audit.results
    ]
    found: list[Any] = [*audit.results, audit.joint]
    p = [(f"{each.p:.3g}", f"{each.log10_p:.1f}") for each in found]
    print_table(
        ("test", "of", "known, at least", "p", "log10 p"),
        ((*row, *each) for row, each in zip([*rows, ("all together", "", "")], p, strict=True)),
        title=f"Has {audit.header.model} read {audit.header.dataset} as it was sealed?",
    )
    say(f"verified: {_described(sealed)}", guarantee(sealed.seal), "not claimed:")
    say(*(f"  {line}" for line in NOT_CLAIMED), *left_out)
    print_cost(audit)
