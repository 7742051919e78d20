"""An option that nothing that is asked for would use is refused by its name."""

import json
from pathlib import Path

import pytest
import typer.main

from contamination.cli.choices import ModelChoice
from contamination.cli.main import application
from contamination.cli.unused import refuse_unused_mirror

TEST = ("test", "model", "in.jsonl")
SCORE = ("score", "model", "in.jsonl")
MEMBERSHIP = ("membership", "model", "in.jsonl")
AUDIT = ("audit", "in.jsonl", "--model", "model")
SEAL = ("seal", "in.jsonl", "--out", "sealed", "--axis", "order")
GENERATE = ("--access", "generate")
THERE = ("--endpoint", "http://127.0.0.1:1/v1")
# A command, the option that would do nothing there, and what else the message names.
UNUSED = [
    (TEST, "--permutations 1", "--test sharded_exact"),
    ((*SCORE, "--test", "min_p"), "--permutations 1", "--test sharded_exact"),
    ((*TEST, "--axis", "options"), "--permutations 1", "options"),
    ((*TEST, *GENERATE), "--permutations 9", "--access generate"),
    ((*TEST, *GENERATE), "--shards 9", "--access generate"),
    ((*TEST, *GENERATE, "--permutations", "9"), "--test permutation", "--access generate"),
    ((*TEST, "--test", "permutation"), "--shards 2", "permutation"),
    (TEST, "--arrangements 6", "--axis options"),
    (SCORE, "--answer text", "--axis options"),
    (TEST, "--max-requests 3", "--endpoint"),
    (SCORE, "--timeout 3", "--endpoint"),
    (MEMBERSHIP, "--concurrency 3", "--endpoint"),
    ((*TEST, *THERE), "--precision float16", "--endpoint"),
    ((*MEMBERSHIP, *THERE), "--precision float16", "--endpoint"),
    ((*MEMBERSHIP, *THERE, "--reference", "small"), "--revision main", "--endpoint"),
    ((*TEST, *GENERATE), "--price-in 1", "--dry-run"),
    ((*TEST, "--dry-run"), "--output a.json", "--dry-run"),
    (("leaderboard", "."), "--kind successors", "--own"),
    (AUDIT, "--paired", "--held-out"),
    (AUDIT, "--within source", "--held-out"),
    (SEAL, "--permutations 3", "--test sharded_exact"),
    ((*SEAL, "--test", "permutation"), "--shards 2", "permutation"),
    (SEAL, "--arrangements 6", "--axis both"),
    (SEAL, "--answer text", "--axis both"),
    (SEAL, "--options text", "--axis both"),
    (SEAL, "--other text", "--axis both"),
    (SEAL, "--wordings-of text", "no record has 'wordings'"),
    (SEAL, "--answers text", "no record has 'answers'"),
    (SEAL, "--score loss", "hold_out"),
    (MEMBERSHIP, "--seed 3", "--neighbours"),
    ((*MEMBERSHIP, "--score", "cloze"), "--seed 3", "--neighbours"),
    (TEST, "--mirror .", "registered"),
    (SCORE, "--mirror .", "registered"),
    (AUDIT, "--mirror .", "registered"),
    (MEMBERSHIP, "--mirror .", "registered"),
    (("compare", "model", "in.jsonl", "blank.jsonl"), "--mirror .", "registered"),
    ((*MEMBERSHIP, "--json"), "--all", "--json"),
]


@pytest.mark.parametrize(("command", "typed", "named"), UNUSED, ids=lambda value: str(value)[-40:])
def test_an_option_that_would_do_nothing_is_refused(command, typed, named, here, refused) -> None:
    option, *value = typed.split()
    found = refused(*command, option, *value)
    assert option in found
    assert named in found


# Options with which an author goes on with a seal that an earlier command has stated.
GOES_ON = {"--out", "--signature", "--stamp", "--tsa", "--help"}
VALUES = {"--axis": ["order"], "--alpha": ["0.5"], "--commit": []}


def options_that_state() -> list[str]:
    """Return all options of `seal` but those with which an author goes on."""
    command = typer.main.get_command(application()).commands["seal"]
    named = [option.opts[0] for option in command.params if option.param_type_name == "option"]
    return [name for name in named if name not in GOES_ON]


@pytest.mark.parametrize("option", options_that_state())
@pytest.mark.parametrize("goes_on", [("--stamp",), ("--signature", "00")], ids=" ".join)
def test_a_seal_that_was_stated_is_not_stated_again(option, goes_on, refused) -> None:
    value = VALUES.get(option, ["7"])
    assert refused("seal", ".", *goes_on, option, *value).startswith(f"{option} is stated when")


def test_a_mirror_in_which_one_of_the_sets_is_looked_for_is_kept() -> None:
    for name in ("gsm8k", "org/name:config"):
        refuse_unused_mirror(Path(), ["in.jsonl", name])


def test_a_reference_is_loaded_here_whatever_serves_the_first_model() -> None:
    served = ModelChoice(
        endpoint="http://a/v1",
        tokenizer="a",
        context=9,
        concurrency=3,
        precision="float16",
        batch_tokens=64,
        reference="small",
    )
    assert served.of_reference() == ModelChoice(precision="float16", batch_tokens=64)


def test_the_revision_of_a_model_is_not_that_of_its_control() -> None:
    choice = ModelChoice(revision="abc123", precision="float16", context=9, control="older")
    assert choice.of_model("org/model") == choice
    control = choice.of_model("older")
    assert control.revision is None
    assert (control.precision, control.context) == ("float16", 9)


def test_an_option_that_one_of_the_tests_uses_is_kept(here, call) -> None:
    asked = ("--test", "successor", "--test", "sharded_exact", "--permutations", "3")
    status, out, _ = call(*TEST, *asked, "--dry-run", "--json")
    assert status == 0
    assert json.loads(out)["permutations"] == 3
