"""Proof from what a model writes: the generated successor, and quizzes on options and records.

Both need text alone, so that they run on chat endpoints. H0 and guarantees stand with
the statistics (`contamination.statistics.successor`). What keeps them exact here: every
prompt holds one record or one item, whatever stands beside it in the set; the noise of
a model here is drawn by the content of the prompt; and the prompts are asked in a
random order, so a server that drifts does not drift along the published one.

The places of a quiz, and which other arrangements stand beside the published one, come
from a secret seed that the store keeps. From a public one, whoever reads this code
could find the published arrangement in the question: it is the one for which these
others are drawn.
"""

import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from contamination import statistics
from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_option_test, zlib_test
from contamination.audit.finding import Finding
from contamination.audit.generated_texts import (
    Usable,
    count_usable,
    letter_of,
    pieces_of,
    words,
)
from contamination.audit.plan import ScoringPlan
from contamination.audit.request import CHOICES, Request
from contamination.audit.result import Audit
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.completions import (
    CompletionHeader,
    Completions,
    stored_secret,
)
from contamination.scoring.cost import Workload
from contamination.scoring.generation import (
    ONE_LETTER,
    Generator,
    LocalGenerator,
    Sampling,
)
from contamination.scoring.plan import stores_of
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.tokens import tokenize
from contamination.testsets.variants import VariantSet

ORDERINGS = 20_000  # sampled, beside the published one
SECRET = re.compile("[0-9a-f]{32}")  # 128 bits, in hexadecimal digits
FEWEST = 3  # records: centring leaves nothing of two
COMPRESSED = 250  # records of a shard under the compressor, which takes n^2 steps
BYTES_PER_TOKEN = 4  # about, of a server's tokenizer
NOT_FOR_TEXT = ("tests", "shards", "permutations", "arrangements")


@dataclass(frozen=True, eq=False)
class GenerationAudit:
    """The work of an audit of what one model writes about one set.

    Raises InputError for what the request cannot ask of texts, and for a set that is
    too small.

    Attributes
    ----------
    request : its axis is "order" (the generated successor) or "options" (the quiz).
    sampling : of the texts; its seed is that of the request. None takes the defaults of
        `Sampling` or, of a quiz, ONE_LETTER, of which more tokens can be asked.
    next_record : on the axis "order", ask which of CHOICES records comes next.
    arrange : makes CHOICES arrangements of each item from a `seed`; None makes those of
        the request.
    secret : 32 hexadecimal digits from which the places of a quiz are drawn, and the
        arrangements. None takes those of the store, else new ones.
    """

    generator: Generator
    test_set: ExampleSet
    request: Request
    sampling: Sampling | None = None
    next_record: bool = False
    arrange: Callable[..., VariantSet] | None = None
    secret: str | None = None

    def __post_init__(self) -> None:
        """Check what is asked, before anything is written."""
        for field in fields(Request):
            if field.name in NOT_FOR_TEXT and getattr(self.request, field.name) != field.default:
                raise InputError(
                    f"{field.name} is for log-probabilities, and a model that writes "
                    "gives none: leave it out",
                    parameter=field.name,
                )
        if self.request.axis == "both":
            raise InputError(
                "what a model writes tests one axis: give axis='order' or 'options'",
                parameter="axis",
            )
        if self.next_record and self.request.axis == "options":
            raise InputError(
                "a quiz about records asks for their order: leave out axis='options'",
                parameter="axis",
            )
        if self.secret is not None and SECRET.fullmatch(self.secret) is None:
            raise InputError("secret: give 32 hexadecimal digits")
        if self.quiz and replace(self.asked, tokens=ONE_LETTER.tokens, seed=0) != ONE_LETTER:
            raise InputError(
                "samples and temperature: the quiz asks for one letter; leave them out",
                parameter="samples",
            )
        fewest = CHOICES + 1 if self.next_record else FEWEST
        if len(self.test_set.examples) < fewest:
            raise InputError(
                f"{self.test_set.name}: fewer than {fewest} records have no order",
            )
        worded = sum(1 for example in self.test_set.examples if words(example))
        if not self.quiz and worded < FEWEST:
            raise InputError(
                f"{self.test_set.name}: {worded} records have a word, and the test "
                "compares words: give a template that shows text, or ask by a quiz",
                parameter="template",
            )

    @property
    def quiz(self) -> bool:
        """Whether a letter is asked for, not continuations."""
        return self.next_record or self.request.axis == "options"

    @cached_property
    def alternatives(self) -> VariantSet:
        """Arrangements of each item, `CHOICES` in a row; errors as `option_variants`."""
        seed = int(self.drawn_from, 16)
        if self.arrange is not None:
            return self.arrange(seed=seed)
        asked = replace(self.request, arrangements=CHOICES)
        return asked.alternatives(self.test_set, seed=seed)

    @cached_property
    def drawn_from(self) -> str:
        """The secret seed of a quiz, in hexadecimal digits; "" of other texts."""
        if not self.quiz:
            return ""
        return self.secret or stored_secret(self.folder) or secrets.token_hex(16)

    @property
    def shards(self) -> int:
        """Of the order: the whole set, or a shard for each question about records."""
        return len(self.test_set.examples) // (CHOICES + 1) if self.next_record else 1

    @cached_property
    def questions(self) -> tuple[tuple[str, str], ...]:
        """Question and right letter: of every item that has so many arrangements, or each shard.

        A shard asks by its first record which of the CHOICES records after that comes
        next.
        """
        of = self.test_set if self.next_record else self.alternatives
        rng = random_stream(int(self.drawn_from, 16), "places in the quiz", of.revision)
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
            found.append(
                (_question([row[i] for i in places], cue), LETTERS[places.index(0)]),
            )
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
        sampling = self.sampling
        if sampling is None:
            sampling = ONE_LETTER if self.quiz else Sampling()
        return replace(sampling, seed=self.request.seed)

    @property
    def model(self) -> str:
        """What tables and stores call the model."""
        return self.request.name or self.generator.name

    @property
    def folder(self) -> Path:
        """Where the texts are kept: by what is asked, and how."""
        what = "continued"
        if self.quiz:
            what = "records" if self.next_record else "quiz"
        asked = self.asked
        name = f"{what}-{self.generator.protocol}-{asked.samples}x{asked.tokens}"
        stores = stores_of(self.request.directory, self.model, self.test_set.name)
        return stores / f"{name}-{asked.temperature:g}"

    @cached_property
    def store(self) -> Completions:
        """The store of the texts; InputError as `Completions`."""
        header = CompletionHeader(
            model=self.model,
            model_revision=self.generator.revision,
            dataset=self.test_set.name,
            dataset_revision=self.test_set.revision,
            template=self.test_set.template,
            prompts=sha256_of(*self.prompts),
            count=len(self.prompts),
            protocol=self.generator.protocol,
            instruction=self.generator.instruction,
            **asdict(self.asked),
            secret=self.drawn_from,
        )
        return Completions(self.folder, header)

    @cached_property
    def plan(self) -> ScoringPlan:
        """What there is to write: requests, tokens in (`read`) and tokens out at most (`scored`).

        Tokens in are counted where the model runs here, else a fourth of the bytes.
        """
        by = self.generator
        number = len(self.prompts)
        texts = [by.instruction + prompt for prompt in self.prompts]
        read = sum(-(-len(text.encode()) // BYTES_PER_TOKEN) for text in texts)
        if isinstance(by, LocalGenerator):
            read = sum(map(len, tokenize(by.scorer.tokenizer, texts)))
        each = self.asked.samples * self.asked.tokens
        work = Workload(number * self.asked.samples, number * each, read, number, 0)
        missing = (number - len(self.store.stored()[0])) * each
        orderings = CHOICES - 1 if self.quiz else ORDERINGS
        return ScoringPlan(
            len(self.test_set.examples),
            orderings,
            (),
            work,
            missing,
            None,
            None,
        )


def audit_generation(
    work: GenerationAudit,
    *,
    alpha: float = 0.05,
    drawn: bool = False,
) -> Audit:
    """Have the model write what is missing, and test it.

    A diagnosis and the zlib baseline are controls, unless a key has `drawn` what is
    tested. `alpha` is 1 - confidence of the bound that comes with a quiz.
    `Audit.generation` counts texts as `Usable` does. Too few of use make a large p say
    nothing (`Finding.answers_problem`); a small one stays a proof, since what is of no
    use only takes evidence away. Raises InputError as the generator and the store.
    """
    plan = work.plan
    store = work.store
    started = time.perf_counter()
    if plan.missing:
        store.fill(work.generator, work.prompts, work.asked)
    seconds = time.perf_counter() - started
    found, served = store.stored()
    texts = [found[i] for i in range(len(work.prompts))]
    if work.quiz:
        result, usable = _test_answers(work, [answer for (answer,) in texts], alpha)
    else:
        result, usable = _test_continuations(work, texts)
    diagnosis = None
    zlib = None
    if not drawn:
        diagnosis, zlib = _controls(work)
    finding = Finding(result, diagnosis, zlib, answers_problem=usable.silence())
    kept = ("samples", "tokens", "temperature", "protocol", "instruction")
    about = {name: getattr(store.header, name) for name in kept}
    dtype = getattr(getattr(work.generator, "scorer", None), "dtype", "unknown")
    return Audit(
        header=store.header,
        plan=plan,
        findings=(finding,),
        stores=(store.directory,),
        seconds=seconds,
        noise=None,
        precision=str(dtype).removeprefix("torch."),
        options_drawn=work.request.drawn,
        generation=asdict(usable) | about | {"served": served, "left_out": list(store.left_out)},
    )


def _test_answers(
    work: GenerationAudit, answers: Sequence[str], alpha: float
) -> tuple[statistics.TestResult, Usable]:
    """Count the questions whose right letter was answered."""
    letters = [letter_of(answer) for answer in answers]
    right = [letter for _, letter in work.questions]
    hits = [given == asked for given, asked in zip(letters, right, strict=True)]
    test = "record_quiz" if work.next_record else "arrangement_quiz"
    result = statistics.quiz_test(hits, choices=CHOICES, test=test, alpha=alpha)
    given = [letter for letter in letters if letter and letter in LETTERS[:CHOICES]]
    return result, count_usable(answers, given)


def _test_continuations(
    work: GenerationAudit, texts: Sequence[Sequence[str]]
) -> tuple[statistics.TestResult, Usable]:
    """Test what was written after each record for what comes next."""
    records = [words(example) for example in work.test_set.examples]
    written = [list(map(words, each)) for each in texts]
    owned = [pieces_of(record) for record in records]
    holders = Counter(chain.from_iterable(owned))
    given: list[tuple[str, ...]] = []
    for own, each in zip(owned, written, strict=True):
        for text in each:
            pieces = pieces_of(text, singly=True)
            # another record has it
            if any(holders[piece] > (piece in own) for piece in pieces):
                given.append(tuple(text))
    scores = statistics.generated_successors(records, written)
    rng = random_stream(
        work.request.seed,
        "generated successors",
        work.test_set.revision,
    )
    result = statistics.generated_successor_test(scores, resamples=ORDERINGS, rng=rng)
    return result, count_usable(list(chain.from_iterable(texts)), given)


def _controls(work: GenerationAudit) -> tuple[Diagnosis, statistics.TestResult]:
    """Return what the order gives away without the model, and the same test under a compressor."""
    request = work.request
    if request.axis == "options":
        diagnosis = diagnose_arrangements(
            work.test_set,
            seed=request.seed,
            keep=request.keep,
        )
        return diagnosis, zlib_option_test(work.alternatives)
    shards = max(work.shards, -(-len(work.test_set.examples) // COMPRESSED))
    diagnosis = diagnose_order(work.test_set, seed=request.seed, shards=work.shards)
    control = zlib_test(
        work.test_set,
        kind="successors",
        shards=shards,
        permutations=0,
        seed=request.seed,
    )
    return diagnosis, control


def _question(versions: Sequence[str], cue: str) -> str:
    """Ask which arrangement of an item is the published one, or which record comes after `cue`."""
    letters = LETTERS[: len(versions)]
    pairs = zip(letters, versions, strict=True)
    shown = "\n".join(f"Version {letter}\n{text.strip()}\n" for letter, text in pairs)
    if cue:
        shown_before = (
            f"This is a record of a published test:\n\n{cue.strip()}\n\nOne of these comes next."
        )
        question = "Which version comes next in the published test?"
    else:
        shown_before = (
            "One of these versions of a test item stands in the published test; in the "
            "others the options are in another order."
        )
        question = "Which version is the published one?"
    named = ", ".join(letters)
    return f"{shown_before}\n\n{shown}\n{question} Answer with one letter ({named}).\nAnswer:"
