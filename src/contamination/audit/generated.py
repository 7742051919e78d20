"""Proof from what a model writes: the generated successor, and quizzes on options and records.

Both need text alone, so that they run on chat endpoints. H0 and guarantees stand with the
statistics (`contamination.statistics.successor`). What keeps them exact here: every prompt holds
one record or one item, whatever stands beside it in the set; the noise of a model here is drawn by
the content of the prompt; and the prompts are asked in a random order, so a server that drifts
does not drift along the published one.

The unit of the n-grams is the word, not the token. Servers do not tell how they divide text into
tokens, and with words the same texts give the same p-value wherever they were written. The tokens
of a word also change where a text begins or ends in the middle of it.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from contamination import statistics
from contamination.audit.compressor import compressor_alternatives, compressor_test
from contamination.audit.diagnostics import diagnose_arrangements, diagnose_order
from contamination.audit.plan import ScoringPlan
from contamination.audit.request import CHOICES, Request
from contamination.audit.result import Finding
from contamination.audit.verdict import Audit
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.cost import Workload
from contamination.scoring.generation import (
    CompletionHeader,
    Completions,
    Generator,
    LocalGenerator,
    Sampling,
)
from contamination.scoring.plan import stores_of
from contamination.testsets.alternatives import AlternativeSet
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.tokens import tokenize

ORDERINGS = 20_000  # sampled, beside the published one
ONE_LETTER = Sampling(samples=1, tokens=4, temperature=0)
FEWEST = 3  # records: centring leaves nothing of two
COMPRESSED = 250  # records of a shard under the compressor, which takes n^2 steps
BYTES_PER_TOKEN = 4  # about, of a server's tokenizer
NOT_FOR_TEXT = ("tests", "shards", "permutations", "arrangements")
# A run of letters and digits, or one character of scripts that put no space between words.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_ANSWER = re.compile(r"\W*([A-Z])\b")


@dataclass(frozen=True, eq=False)
class Writing:
    """The work of an audit of what one model writes about one set.

    Raises InputError for what the request cannot ask of texts, and for a set that is too small.

    Attributes
    ----------
    request : its axis is "order" (the generated successor) or "options" (the quiz).
    sampling : of the generated successor; its seed is that of the request.
    next_record : on the axis "order", ask which of CHOICES records comes next.
    arranged : CHOICES arrangements of each item; None draws them.
    """

    generator: Generator
    test_set: ExampleSet
    request: Request
    sampling: Sampling = Sampling()  # noqa: RUF009 - frozen
    next_record: bool = False
    arranged: AlternativeSet | None = None

    def __post_init__(self) -> None:
        """Check what is asked, before anything is written."""
        for field in fields(Request):
            if field.name in NOT_FOR_TEXT and getattr(self.request, field.name) != field.default:
                typed = field.name.replace("tests", "test")
                raise InputError(f"--{typed} is for log-probabilities: --access generate has none")
        if self.request.axis == "both":
            raise InputError("--access generate tests one axis: give --axis order or options")
        if self.next_record and self.request.axis == "options":
            raise InputError("--quiz asks for the order of records: leave out --axis options")
        if self.quiz and self.sampling != Sampling():
            raise InputError("--samples, --tokens, --temperature: the quiz asks for one letter")
        if len(self.test_set.examples) < (fewest := CHOICES + 1 if self.next_record else FEWEST):
            raise InputError(f"{self.test_set.name}: fewer than {fewest} records have no order")

    @property
    def quiz(self) -> bool:
        """Whether a letter is asked for, not continuations."""
        return self.next_record or self.request.axis == "options"

    @cached_property
    def alternatives(self) -> AlternativeSet:
        """Arrangements of each item, `CHOICES` in a row; errors as `option_alternatives`."""
        asked = replace(self.request, arrangements=CHOICES)
        return self.arranged or asked.alternatives(self.test_set)

    @property
    def shards(self) -> int:
        """Of the order: the whole set, or a shard for each question about records."""
        return len(self.test_set.examples) // (CHOICES + 1) if self.next_record else 1

    @cached_property
    def questions(self) -> tuple[tuple[str, str], ...]:
        """Question and right letter: of every item that has so many arrangements, or each shard.

        A shard asks by its first record which of the CHOICES records after that comes next.
        """
        of = self.test_set if self.next_record else self.alternatives
        rng = random_stream(self.request.seed, "places in the quiz", of.revision)
        if self.next_record:
            examples = self.test_set.examples
            starts = [start for start, _ in shard_bounds(len(examples), self.shards)]
            rows = [(examples[i], examples[i + 1 : i + 1 + CHOICES]) for i in starts]
        else:
            pairs = zip(self.alternatives.texts, self.alternatives.distinct, strict=True)
            rows = [("", row) for row, distinct in pairs if distinct == CHOICES]
        found = []
        for cue, row in rows:
            places = rng.permutation(CHOICES).tolist()
            found.append((_question([row[i] for i in places], cue), LETTERS[places.index(0)]))
        if not found:
            told = f"no item has {CHOICES} arrangements: it takes three options that may move"
            raise InputError(f"{self.test_set.name}: {told}")
        return tuple(found)

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """What the model continues: each record as it is, or the questions."""
        return tuple(q for q, _ in self.questions) if self.quiz else self.test_set.examples

    @cached_property
    def asked(self) -> Sampling:
        """How the texts are sampled."""
        return replace(ONE_LETTER if self.quiz else self.sampling, seed=self.request.seed)

    @cached_property
    def store(self) -> Completions:
        """The store of the texts; InputError as `Completions`."""
        by, of, asked = self.generator, self.test_set, self.asked
        model, prompts = self.request.name or by.name, self.prompts
        header = CompletionHeader(
            *(model, by.revision, of.name, of.revision, of.template, sha256_of(*prompts)),
            *(len(prompts), by.protocol, by.instruction),
            **asdict(asked),
        )
        what = ("records" if self.next_record else "quiz") if self.quiz else "continued"
        name = f"{what}-{by.protocol}-{asked.samples}x{asked.tokens}"
        folder = stores_of(self.request.directory, model, of.name)
        return Completions(folder / f"{name}-{asked.temperature:g}", header)

    @cached_property
    def plan(self) -> ScoringPlan:
        """What there is to write: requests, tokens in (`read`) and tokens out at most (`scored`).

        Tokens in are counted where the model runs here, else a fourth of the bytes.
        """
        by, number = self.generator, len(self.prompts)
        texts = [by.instruction + prompt for prompt in self.prompts]
        read = sum(-(-len(text.encode()) // BYTES_PER_TOKEN) for text in texts)
        if isinstance(by, LocalGenerator):
            read = sum(map(len, tokenize(by.scorer.tokenizer, texts)))
        each = self.asked.samples * self.asked.tokens
        work = Workload(number * self.asked.samples, number * each, read, number, 0)
        missing = (number - len(self.store.stored()[0])) * each
        orderings = CHOICES - 1 if self.quiz else ORDERINGS
        return ScoringPlan(len(self.test_set.examples), orderings, (), work, missing, None, None)


def audit_written(work: Writing, *, alpha: float = 0.05, drawn: bool = False) -> Audit:
    """Have the model write what is missing, and test it.

    Diagnosis and compressor stand beside, unless a key has `drawn` what is tested. `alpha` is 1 -
    confidence of the bound that comes with a quiz. `Audit.written` counts texts, those that are
    `empty` (refused, filtered) and, of the others, those that are `unusable`: no two words in a row
    that stand in some record, or in a quiz no letter. Raises InputError as the generator and the
    store, and where nothing at all was written.
    """
    plan, store, request = work.plan, work.store, work.request
    started = time.perf_counter()
    if plan.missing:
        store.fill(work.generator, work.prompts, work.asked)
    seconds, (found, served) = time.perf_counter() - started, store.stored()
    texts = [found[i] for i in range(len(work.prompts))]
    empty = sum(not text.strip() for each in texts for text in each)
    if empty == plan.work.sequences:
        raise InputError(
            f"{store.header.model}: all {empty:,} texts were refused or empty; ask another model, "
            "or by /v1 of completions"
        )
    result: statistics.TestResult
    if work.quiz:
        answers = [letter_of(text) for (text,) in texts]
        hits = [a == right for a, (_, right) in zip(answers, work.questions, strict=True)]
        test = "record_quiz" if work.next_record else "arrangement_quiz"
        result = statistics.quiz_test(hits, choices=CHOICES, test=test, alpha=alpha)
        usable = sum(answer is not None for answer in answers)
    else:
        records = list(map(words, work.test_set.examples))
        written = [list(map(words, each)) for each in texts]
        pairs = {pair for each in records for pair in pairwise(each)}
        usable = sum(not pairs.isdisjoint(pairwise(text)) for each in written for text in each)
        scores = statistics.generated_successors(records, written)
        rng = random_stream(request.seed, "generated successors", work.test_set.revision)
        result = statistics.generated_successor_test(scores, resamples=ORDERINGS, rng=rng)
    diagnosis, control = None, None
    if not drawn and request.axis == "options":
        diagnosis = diagnose_arrangements(work.test_set, seed=request.seed, keep=request.keep)
        control = compressor_alternatives(work.alternatives)
    elif not drawn:
        shards = max(work.shards, -(-len(work.test_set.examples) // COMPRESSED))
        diagnosis = diagnose_order(work.test_set, seed=request.seed, shards=work.shards)
        asked = {"kind": "successors", "shards": shards, "permutations": 0, "seed": request.seed}
        control = compressor_test(work.test_set, **asked)
    counts = {"texts": plan.work.sequences, "empty": empty}
    counts["unusable"] = plan.work.sequences - empty - usable
    kept = ("samples", "tokens", "temperature", "protocol", "instruction")
    about: dict[str, Any] = {name: getattr(store.header, name) for name in kept}
    dtype = getattr(getattr(work.generator, "scorer", None), "dtype", "unknown")
    return Audit(
        *(store.header, plan, (Finding(result, diagnosis, control),), (store.directory,)),
        *(seconds, None, str(dtype).removeprefix("torch.")),
        drawn=request.drawn,
        written=counts | about | {"served": served},
    )


def words(text: str) -> list[str]:
    """Words of a text, in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def letter_of(answer: str) -> str | None:
    """The letter that an answer begins with, alone and in capitals; None if it does not."""
    found = _ANSWER.match(answer)
    return found and found[1]


def _question(versions: Sequence[str], cue: str) -> str:
    """Ask which arrangement of an item is the published one, or which record comes after `cue`."""
    letters = LETTERS[: len(versions)]
    pairs = zip(letters, versions, strict=True)
    shown = "\n".join(f"Version {letter}\n{text.strip()}\n" for letter, text in pairs)
    told, asked = (
        "One of these versions of a test item stands in the published test; in the others the "
        "options are in another order.",
        "Which version is the published one?",
    )
    if cue:
        told = f"This is a record of a published test:\n\n{cue.strip()}\n\nOne of these comes next."
        asked = "Which version comes next in the published test?"
    return f"{told}\n\n{shown}\n{asked} Answer with one letter ({', '.join(letters)}).\nAnswer:"
