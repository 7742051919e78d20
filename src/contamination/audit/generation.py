"""Proof from what a model writes: the generated successor, and quizzes.

Both need text alone, so that they run on chat endpoints. H0 and guarantees stand with
the statistics (`contamination.statistics.successor`). What keeps them exact here: every
prompt holds one record or one item, whatever precedes or follows it in the set; a local
model's noise is drawn by the content of the prompt; and the prompts are asked in a
random order, so a server that drifts does not drift along the published one.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain

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
    texts_about_others,
    words,
)
from contamination.audit.generation_plan import ORDERINGS, GenerationAudit
from contamination.audit.request import CHOICES
from contamination.audit.result import Audit
from contamination.randomness import random_stream
from contamination.testsets.option_texts import LETTERS

COMPRESSED = 250  # records of a shard under the zlib baseline, which takes n^2 steps
VALID_LETTERS = LETTERS[:CHOICES]


def audit_generation(
    work: GenerationAudit,
    *,
    alpha: float = 0.05,
    drawn: bool = False,
) -> Audit:
    """Have the model write what is missing, and test it.

    `Audit.generation` counts texts as `Usable` does. Too few of use make a large p say
    nothing (`Finding.answers_problem`); a small one stays a proof, since what is of no
    use only takes evidence away. The bound that comes with a quiz has confidence 1 -
    `alpha`. If a key has `drawn` what is tested, it needs no controls; else they are a
    diagnosis and the zlib baseline. Raises InputError if the generator fails, or the
    store has texts of something else.
    """
    plan = work.plan
    store = work.store
    started = time.perf_counter()
    if plan.missing:
        store.fill(work.generator, work.prompts, work.effective_sampling)
    seconds = time.perf_counter() - started
    stored_texts, served = store.stored()
    texts = [stored_texts[number] for number in range(len(work.prompts))]
    if work.quiz:
        answers = [answer for (answer,) in texts]
        result, usable = _test_answers(work, answers, alpha)
    else:
        result, usable = _test_continuations(work, texts)
    diagnosis = None
    zlib = None
    if not drawn:
        diagnosis, zlib = _controls(work)
    finding = Finding(result, diagnosis, zlib, answers_problem=usable.silence())
    generation = asdict(usable)
    for name in ("samples", "tokens", "temperature", "protocol", "instruction"):
        generation[name] = getattr(store.header, name)
    generation["served"] = served
    generation["left_out"] = list(store.left_out)
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
        order_drawn=work.request.order_drawn,
        generation=generation,
    )


def _test_answers(
    work: GenerationAudit,
    answers: Sequence[str],
    alpha: float,
) -> tuple[statistics.TestResult, Usable]:
    """Test how many questions were answered by the right letter."""
    letters = [letter_of(answer) for answer in answers]
    pairs = zip(letters, work.questions, strict=True)
    hits = [letter == question.letter for letter, question in pairs]
    test = "record_quiz" if work.next_record else "arrangement_quiz"
    result = statistics.quiz_test(hits, choices=CHOICES, test=test, alpha=alpha)
    usable_letters = [letter for letter in letters if letter and letter in VALID_LETTERS]
    return result, count_usable(answers, usable_letters)


def _test_continuations(
    work: GenerationAudit,
    texts: Sequence[Sequence[str]],
) -> tuple[statistics.TestResult, Usable]:
    """Test whether the texts after each record resemble the record that comes next."""
    records = [words(example) for example in work.test_set.examples]
    continuations = []
    for texts_of_record in texts:
        continuations.append([words(text) for text in texts_of_record])
    scores = statistics.generated_successors(records, continuations)
    rng = random_stream(
        work.request.seed,
        "generated successors",
        work.test_set.revision,
    )
    result = statistics.generated_successor_test(scores, resamples=ORDERINGS, rng=rng)
    usable_texts = texts_about_others(records, continuations)
    return result, count_usable(list(chain.from_iterable(texts)), usable_texts)


def _controls(work: GenerationAudit) -> tuple[Diagnosis, statistics.TestResult]:
    """Return the diagnosis of the order, and the same test under the zlib baseline."""
    request = work.request
    if request.axis == "options":
        diagnosis = diagnose_arrangements(
            work.test_set,
            seed=request.seed,
            keep=request.keep,
        )
        return diagnosis, zlib_option_test(work.variants)
    shards = max(work.shards, math.ceil(len(work.test_set.examples) / COMPRESSED))
    diagnosis = diagnose_order(work.test_set, seed=request.seed, shards=work.shards)
    control = zlib_test(
        work.test_set,
        kind="successors",
        shards=shards,
        permutations=0,
        seed=request.seed,
    )
    return diagnosis, control
