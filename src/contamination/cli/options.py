"""Options that several commands share: an alias for each, with its names and its help.

Each command lists its own parameters, so that they are read where the command is. The
groups are the headings under which `--help` shows them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from contamination.audit.request import MOST_PERMUTATIONS, Axis

WHAT = "What to test"
TEXT = "Text of a record"
MODEL = "Model"
ENDPOINT = "Endpoint"
GENERATION = "Generated text (--access generate)"
OUTPUT = "Output"
OPTIONS_AXIS = "Order of options (--axis options or both)"
GROUPS = (WHAT, TEXT, MODEL, ENDPOINT, GENERATION, OPTIONS_AXIS, OUTPUT)


def option(text: str, *names: str, group: str | None = None, **settings: Any) -> Any:
    """Return an option of a command with its help, under the heading of its group.

    `names` are those of the flag, if the parameter does not give them. `settings` are
    further arguments of `typer.Option`, such as limits.
    """
    if "min" in settings:
        settings.setdefault("metavar", "N")  # the range would take the room of the help
    return typer.Option(*names, help=text, rich_help_panel=group, **settings)


# --- arguments ------------------------------------------------------------------------

ModelName = Annotated[
    str,
    typer.Argument(
        help="Directory, hub id, .gguf file, or smollm2-135m; with --endpoint, its name there.",
    ),
]
Dataset = Annotated[
    str,
    typer.Argument(
        help="Test set in its own order: a registered name (`contamination data list`), a "
        ".jsonl, .json, .csv, .parquet or .txt file, lm-eval:TASK, a log as "
        "lm-eval-samples:FILE, inspect:FILE or lighteval:FILE, a directory, or "
        "ORG/NAME[:CONFIG] of the hub."
    ),
]

# --- what to test ---------------------------------------------------------------------

Tests = Annotated[
    list[str] | None,
    option(
        "Test to run, of those listed below; may be repeated.",
        "--test",
        group=WHAT,
        show_default=False,
    ),
]
Shards = Annotated[
    int | None,
    option(
        "Contiguous parts into which the set is cut; default: parts of 10 examples for "
        "tests of pairs, of 4 for other tests, and at most 50 parts.",
        group=WHAT,
    ),
]
Permutations = Annotated[
    int,
    option(
        "Shuffled orderings with which each shard is compared, at most "
        f"{MOST_PERMUTATIONS:,}; more of them permit a smaller p-value. Tests of pairs "
        "sample thousands of their own.",
        group=WHAT,
    ),
]
TestedAxis = Annotated[
    Axis,
    option(
        "Test the order of records, the order of the options of each item, or both combined.",
        "--axis",
        group=WHAT,
    ),
]
LEAST_ALPHA = 1e-12
MOST_ALPHA = 0.999
Alpha = Annotated[
    float, option("Level of the verdict.", group=WHAT, min=LEAST_ALPHA, max=MOST_ALPHA)
]
Within = Annotated[
    str | None,
    option("Field within whose values the sides were drawn, such as source.", group=WHAT),
]
Paired = Annotated[
    bool,
    option(
        "State that record i of the one file and record i of the other are a pair, of which one "
        "was drawn.",
        "--paired",
        group=WHAT,
    ),
]
OrderOfRecords = Annotated[
    Literal["published", "drawn"],
    option(
        "drawn: state that the order of records was drawn at random. Its diagnosis and the "
        "zlib baseline are then remarks, and the verdict names the statement.",
        "--order",
        group=WHAT,
    ),
]
Seed = Annotated[int, option("Seed of all random draws.", group=WHAT, min=0)]

# --- the order of options -------------------------------------------------------------

Arrangements = Annotated[
    int,
    option(
        "Orders of the options of an item that are compared, the published one included.",
        group=OPTIONS_AXIS,
        min=2,
    ),
]
KeepAnswer = Annotated[
    bool,
    option(
        "Keep the right option in place and permute the others.",
        "--keep-answer",
        group=OPTIONS_AXIS,
    ),
]
Drawn = Annotated[
    bool,
    option(
        "State that the order of options was randomised by a seed.",
        "--drawn",
        group=OPTIONS_AXIS,
    ),
]
Answer = Annotated[
    list[str] | None,
    option(
        "Field that names the right option, by label, index, text or flags; may be repeated.",
        group=OPTIONS_AXIS,
        metavar="FIELD",
    ),
]
OptionFields = Annotated[
    list[str] | None,
    option(
        "Field that holds the options, as a list or one field for each, or a list "
        "parallel to them; may be repeated.",
        "--options",
        group=OPTIONS_AXIS,
        metavar="FIELD",
    ),
]
Other = Annotated[
    list[str] | None,
    option(
        "Field that does not depend on the options; may be repeated.",
        group=OPTIONS_AXIS,
        metavar="FIELD",
    ),
]

# --- text of a record -----------------------------------------------------------------

TemplateText = Annotated[
    str | None,
    option(
        "Template that makes a record a text: its name, or text with {field}; default: "
        "the template of a registered set, or of the layout of the records.",
        "--template",
        group=TEXT,
    ),
]
Field = Annotated[
    str | None,
    option("Name of the field that is the whole text.", "--field", group=TEXT),
]
MaxRecords = Annotated[
    int | None,
    option(
        "Number of records to read, from the start; default: 5,000 of a registered set.",
        group=TEXT,
    ),
]
Mirror = Annotated[
    Path | None,
    option(
        "Directory of a local mirror of registered sets; default: the variable CONTAMINATION_DATA.",
        group=TEXT,
    ),
]
Split = Annotated[
    str | None,
    option("Split of a data set of the hub; default: test.", group=TEXT),
]
DataRevision = Annotated[
    str | None, option("Branch, tag or commit of a data set of the hub.", group=TEXT)
]

# --- the model ------------------------------------------------------------------------

Revision = Annotated[
    str | None,
    option("Branch, tag or commit of MODEL on the hub; not of a second model.", group=MODEL),
]
PrecisionName = Annotated[
    str,
    option("Precision: auto, float32, bfloat16 or float16.", "--precision", group=MODEL),
]
Attention = Annotated[
    str | None,
    option("Attention kernel: sdpa, flash_attention_2 or eager.", group=MODEL),
]
Compile = Annotated[
    bool, option("Compile the network with torch.compile.", "--compile", group=MODEL)
]
Context = Annotated[
    int | None,
    option(
        "Tokens that the model reads at once; default: the model's maximum.",
        group=MODEL,
    ),
]
BatchTokens = Annotated[
    int | None, option("Largest number of tokens in a batch.", group=MODEL, min=1)
]
TrustRemoteCode = Annotated[
    bool,
    option(
        "Allow code from the model repository to run.",
        "--trust-remote-code",
        group=MODEL,
    ),
]

# --- the endpoint ---------------------------------------------------------------------

Endpoint = Annotated[
    str | None,
    option(
        "URL of an OpenAI-compatible API (.../v1) that serves the model.",
        group=ENDPOINT,
    ),
]
Tokenizer = Annotated[
    str | None,
    option(
        "Tokenizer of the model behind the endpoint: directory or hub id.",
        group=ENDPOINT,
    ),
]
Concurrency = Annotated[
    int,
    option("Number of requests sent at the same time.", group=ENDPOINT),
]
MaxRequests = Annotated[
    int | None,
    option("Largest number of requests to send, retries included.", group=ENDPOINT),
]
Timeout = Annotated[
    float,
    option(
        "Seconds to wait for an answer; a request is tried up to 7 times in ten minutes.",
        group=ENDPOINT,
    ),
]
ApiKeyEnv = Annotated[
    str,
    option("Environment variable that holds the API key.", group=ENDPOINT),
]

# --- output ---------------------------------------------------------------------------

StoreDirectory = Annotated[
    Path,
    option("Directory in which log-probabilities are kept.", "--store", group=OUTPUT),
]
AsJson = Annotated[
    bool,
    option("Print JSON on standard output.", "--json", group=OUTPUT),
]
CsvFile = Annotated[Path | None, option("CSV file to write the table to.", group=OUTPUT)]
OutputFiles = Annotated[
    list[Path] | None,
    option(
        "File for the result, whose name says its format: .json, .eee.json (Every "
        "Eval Ever), .conda.csv (CONDA's database), .md (a model card); may be "
        "repeated.",
        "--output",
        group=OUTPUT,
    ),
]
DryRun = Annotated[
    bool,
    option(
        "Print how much there is to score, and score nothing.",
        "--dry-run",
        group=OUTPUT,
    ),
]

# --- generated text -------------------------------------------------------------------

AccessName = Literal["logprobs", "generate"]
