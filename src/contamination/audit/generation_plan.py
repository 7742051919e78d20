"""The texts that a model is to write about a set: prompts, their store, and its plan.

The prompts are the records themselves or the questions of a quiz. The places of a quiz,
and which other arrangements are shown with the published one, come from a secret seed
that the store keeps. From a public one, whoever reads this code could find the
published arrangement in the question: it is the one for which these others are drawn.
"""

import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from contamination.audit.generated_texts import words
from contamination.audit.plan import ScoringPlan
from contamination.audit.quiz import Question, questions_on_options, questions_on_records
from contamination.audit.request import CHOICES, Request
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.scoring.completions import (
    CompletionHeader,
    Completions,
    has_other_number,
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
from contamination.testsets.tokens import tokenize
from contamination.testsets.variants import FixedOptions, VariantSet, option_variants

ORDERINGS = 20_000  # sampled, the published one aside
SECRET = re.compile("[0-9a-f]{32}")  # 128 bits, in hexadecimal digits
FEWEST = 3  # records: centring leaves nothing of two
BYTES_PER_TOKEN = 4  # about, of a server's tokenizer
NOT_FOR_TEXT = ("tests", "shards", "permutations", "arrangements")


@dataclass(frozen=True, eq=False)
class GenerationAudit:
    """The work of an audit of what one model writes about one set.

    Raises InputError for what the request cannot ask of texts, and for a set that is
    too small.

    Attributes
    ----------
    request
        What to test: the axis "order" (the generated successor) or "options" (the
        quiz).
    sampling
        How texts are sampled, with the seed of the request. None takes the defaults of
        `Sampling` or, for a quiz, ONE_LETTER, which may be given with more tokens.
    next_record
        On the axis "order": ask which of CHOICES records comes next.
    template
        Template of the items; None takes the set's own, if it shows every option.
    keep
        Options that stay in place, or the places among which a key has moved them; None
        takes those of the request.
    secret
        32 hexadecimal digits from which the places of a quiz are drawn, and the
        arrangements. None takes those of the store, else new ones.
    """

    generator: Generator
    test_set: ExampleSet
    request: Request
    sampling: Sampling | None = None
    next_record: bool = False
    template: str | None = None
    keep: FixedOptions | Sequence[Sequence[int]] | None = None
    secret: str | None = None

    def __post_init__(self) -> None:
        """Check what is asked, before anything is written."""
        self._check_request()
        if self.secret is not None and SECRET.fullmatch(self.secret) is None:
            raise InputError("secret: give 32 hexadecimal digits")
        if self.quiz and not self._asks_for_one_letter():
            raise InputError(
                "samples and temperature: the quiz asks for one letter; leave them out",
                parameter="samples",
            )
        self._check_size()

    def _check_request(self) -> None:
        """Raise InputError for what the request cannot ask of texts."""
        for field in fields(Request):
            if field.name not in NOT_FOR_TEXT:
                continue
            if getattr(self.request, field.name) != field.default:
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

    def _check_size(self) -> None:
        """Raise InputError for a set of too few records, or too few with words."""
        fewest = CHOICES + 1 if self.next_record else FEWEST
        if len(self.test_set.examples) < fewest:
            raise InputError(
                f"{self.test_set.name}: fewer than {fewest} records have no order; "
                f"give at least {fewest}"
            )
        worded = sum(1 for example in self.test_set.examples if words(example))
        if not self.quiz and worded < FEWEST:
            raise InputError(
                f"{self.test_set.name}: {worded} records have a word, and the test "
                "compares words: give a template that shows text, or ask by a quiz",
                parameter="template",
            )

    def _asks_for_one_letter(self) -> bool:
        """Return whether the sampling is that of a quiz, up to seed and tokens."""
        sampling = self.effective_sampling
        return replace(sampling, tokens=ONE_LETTER.tokens, seed=0) == ONE_LETTER

    @property
    def quiz(self) -> bool:
        """Whether prompts ask for a letter instead of a continuation."""
        return self.next_record or self.request.axis == "options"

    @cached_property
    def variants(self) -> VariantSet:
        """Arrangements of each item, `CHOICES` in a row.

        Raises InputError if the set has no items whose options may move.
        """
        return option_variants(
            self.test_set,
            permutations=CHOICES - 1,
            seed=int(self.secret_seed, 16),
            keep=self.request.keep if self.keep is None else self.keep,
            template=self.template,
        )

    @cached_property
    def secret_seed(self) -> str:
        """The secret seed of a quiz, in hexadecimal digits; "" of other texts."""
        if not self.quiz:
            return ""
        return self.secret or stored_secret(self.folder) or secrets.token_hex(16)

    @property
    def shards(self) -> int:
        """Shards of the order: the whole set, or one for each question on records."""
        if self.next_record:
            return len(self.test_set.examples) // (CHOICES + 1)
        return 1

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions of a quiz, in random places: on records or on options."""
        asked_of = self.test_set if self.next_record else self.variants
        seed = int(self.secret_seed, 16)
        rng = random_stream(seed, "places in the quiz", asked_of.revision)
        if self.next_record:
            return questions_on_records(self.test_set, self.shards, rng)
        return questions_on_options(self.variants, rng)

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """Texts that the model continues: each record as it is, or the questions."""
        if self.quiz:
            return tuple(question.text for question in self.questions)
        return self.test_set.examples

    @cached_property
    def effective_sampling(self) -> Sampling:
        """The sampling of the texts, with the seed of the request."""
        sampling = self.sampling
        if sampling is None:
            sampling = ONE_LETTER if self.quiz else Sampling()
        return replace(sampling, seed=self.request.seed)

    @property
    def model(self) -> str:
        """Name of the model in tables and stores."""
        return self.request.name or self.generator.name

    @cached_property
    def folder(self) -> Path:
        """Folder of the texts, named by kind of prompt, protocol and sampling.

        A test of another number of records is one more test. So its store lies beside
        the first, where each result tells of the other.
        """
        if self.next_record:
            what = "records"
        elif self.quiz:
            what = "quiz"
        else:
            what = "continued"
        sampling = self.effective_sampling
        counts = f"{sampling.samples}x{sampling.tokens}-{sampling.temperature:g}"
        stores = stores_of(self.request.directory, self.model, self.test_set.name)
        name = f"{what}-{self.generator.protocol}-{counts}"
        if has_other_number(stores / name, self.test_set, self.generator.revision):
            name = f"{name}-{self.test_set.revision[:8]}"
        return stores / name

    @cached_property
    def store(self) -> Completions:
        """The store of the texts.

        Raises InputError if the folder has texts of something else.
        """
        sampling = self.effective_sampling
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
            samples=sampling.samples,
            tokens=sampling.tokens,
            temperature=sampling.temperature,
            seed=sampling.seed,
            secret=self.secret_seed,
            records=len(self.test_set.examples) if self.quiz else 0,
        )
        return Completions(self.folder, header)

    @cached_property
    def plan(self) -> ScoringPlan:
        """The requests, tokens in (`read`) and tokens out at most (`scored`).

        Tokens in are counted where the model runs here, else a fourth of the bytes.
        """
        sampling = self.effective_sampling
        prompts = len(self.prompts)
        tokens_of_prompt = sampling.samples * sampling.tokens
        stored_texts, _ = self.store.stored()
        work = Workload(
            sequences=prompts * sampling.samples,
            scored=prompts * tokens_of_prompt,
            read=self._tokens_read(),
            windows=prompts,
            attended=0,
        )
        return ScoringPlan(
            examples=len(self.test_set.examples),
            permutations=CHOICES - 1 if self.quiz else ORDERINGS,
            stores=(),
            work=work,
            missing=(prompts - len(stored_texts)) * tokens_of_prompt,
            flops=None,
            seconds=None,
        )

    def _tokens_read(self) -> int:
        """Return the tokens of all prompts: counted by the tokenizer, or estimated."""
        texts = [self.generator.instruction + prompt for prompt in self.prompts]
        if isinstance(self.generator, LocalGenerator):
            tokenised = tokenize(self.generator.scorer.tokenizer, texts)
            return sum(len(ids) for ids in tokenised)
        sizes = [len(text.encode()) for text in texts]
        return sum(math.ceil(size / BYTES_PER_TOKEN) for size in sizes)
