"""Scores for which a model is asked to write, to fill a gap or to choose: Fu's A4, A5 and A6.

They take many times as long as the scores of `contamination.membership.api`, which one pass gives,
so each is computed by name. What defines them stands in `completion`, `variation`, `cloze` and
`choice`; here the model is asked. All have one direction: **the larger, the more likely a member**.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from contamination.errors import InputError
from contamination.membership import choice, cloze, completion, variation
from contamination.membership.columns import COLUMNS, OF_ITEMS, OF_TEXTS, checked
from contamination.membership.rouge import rouge_l
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.generation import Generator, Sampling
from contamination.scoring.prefix import continuation_logprobs
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.options import Item
from contamination.testsets.tokens import tokenize

Prepared = TypeVar("Prepared")

WORDS = 12  # of a suffix that count
TOKENS = 24  # that are written
SAMPLES = 20  # of CDD, whose authors take 50
TEMPERATURE = 0.8  # theirs
FILLS = 7  # of a gap, besides its key
WORDS_AFTER = 8  # of a gap that count


def text_scores(
    names: Sequence[str],
    scorer: Scorer,
    generator: Generator,
    texts: Sequence[str],
    *,
    seed: int = 0,
    samples: int = SAMPLES,
) -> pd.DataFrame:
    """Compute the scores of `OF_TEXTS` that are named, a row per text and columns of `COLUMNS`.

    Parameters
    ----------
    names
        Names of the scores.
    scorer
        The model, for the gap.
    generator
        The same model, as a source of text.
    texts
        Texts of at least two words; for a gap, with a word of four letters in the
        second half. Other texts have NaN.
    seed
        Seed of the samples.
    samples
        Number of texts to sample after each prefix, for the variation.

    Raises
    ------
    InputError
        For an unknown score, no text that a score can take, and whatever scoring and writing
        refuse.
    """
    wanted = checked(names, OF_TEXTS)
    tables = {}
    if "cloze" in wanted:
        tables["cloze"] = cloze_scores(scorer, texts)
    if wanted != ["cloze"]:
        halves = _prepared(texts, completion.cut_in_half, most=WORDS)
        greedy = _written(generator, halves, Sampling(1, TOKENS, 0, seed))
        tables["completion"] = _completion_table(halves, greedy)
    if "variation" in wanted:
        sampled = _written(generator, halves, Sampling(samples, TOKENS, TEMPERATURE, seed))
        tables["variation"] = _variation_table(halves, greedy, sampled)
    joined = pd.concat([tables[name] for name in wanted], axis=1)
    return joined.reindex(pd.RangeIndex(len(texts), name="text"))


def item_scores(
    names: Sequence[str],
    scorer: Scorer,
    generator: Generator,
    items: Sequence[Item],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute the scores of `OF_ITEMS` that are named, a row per item and columns of `COLUMNS`.

    The arguments are as in `text_scores`; `seed` is of the hidden options. Raises InputError for an
    unknown score, an item without an answer, and a prompt that exceeds the context.
    """
    wanted = checked(names, OF_ITEMS)
    tables = {}
    if "choice" in wanted:
        tables["choice"] = choice_scores(scorer, items)
    if "slot" in wanted:
        tables["slot"] = slot_scores(scorer, generator, items, seed=seed)
    return pd.concat([tables[name] for name in wanted], axis=1).rename_axis("text")


def cloze_scores(scorer: Scorer, texts: Sequence[str]) -> pd.DataFrame:
    """Rank the key of each text among the keys of texts that follow it; see `cloze`.

    `cloze` is the log-probability of the passage with the key less the mean over the other fills
    (nats), and `cloze_first` is 1 where the key is the likeliest.
    """
    passages = _prepared(texts, cloze.hide_key, words_after=WORDS_AFTER)
    keys = [passage.key for passage in passages.values()]
    groups = []
    for number, passage in enumerate(passages.values()):
        fills = [passage.key, *cloze.other_keys(keys, number, FILLS)]
        # A tokenizer keeps a blank with the word that it precedes.
        prompt = passage.before.removesuffix(" ")
        blank = passage.before[len(prompt) :]
        groups.append((prompt, [f"{blank}{fill}{passage.after}" for fill in fills]))
    rows = []
    for log_probs in _sums(scorer, groups, cut=True):
        rows.append((cloze.key_gain(log_probs), float(cloze.key_rank(log_probs) == 1)))
    return pd.DataFrame(rows, index=list(passages), columns=list(COLUMNS["cloze"]))


def choice_scores(scorer: Scorer, items: Sequence[Item]) -> pd.DataFrame:
    """Return how often the letter of the published answer is the likeliest; see `choice`."""
    groups = []
    places: list[list[int]] = []
    for item in items:
        answer = choice.published_answer(item)
        orders = choice.rotations(len(item.options))
        letters = [f" {letter}" for letter in LETTERS[: len(item.options)]]
        for order in orders:
            options = [item.options[place] for place in order]
            groups.append((choice.choice_prompt(item.question, options), letters))
        places.append([order.index(answer) for order in orders])
    values = iter(_sums(scorer, groups))
    shares = []
    for own_places in places:
        of_orders = [next(values) for _ in own_places]
        shares.append(choice.chosen_share(np.array(of_orders), own_places))
    return pd.DataFrame({"choice": shares})


def slot_scores(
    scorer: Scorer, generator: Generator, items: Sequence[Item], *, seed: int = 0
) -> pd.DataFrame:
    """Hide a wrong option of each item, and see whether the model knows it; see `choice`.

    `slot` is the mean log-probability of its tokens (nats), and `slot_rouge_l` the F1 of ROUGE-L of
    the line that the model writes in its place.
    """
    prompts = []
    options = []
    for number, item in enumerate(items):
        hidden = choice.hidden_option(item, random_stream(seed, "hidden option", number))
        prompts.append(choice.slot_prompt(item, hidden))
        options.append(item.options[hidden])
    groups = [(prompt, [f" {option}"]) for prompt, option in zip(prompts, options, strict=True)]
    means = [value.mean(dtype=np.float64) for (value,) in _log_probs(scorer, groups)]
    written = generator.generate(prompts, Sampling(1, TOKENS, 0, seed))
    f1 = []
    for (text,), option in zip(written, options, strict=True):
        line = text.strip().partition("\n")[0]
        f1.append(rouge_l(line, option).f1)
    return pd.DataFrame({"slot": means, "slot_rouge_l": f1})


def _completion_table(
    halves: Mapping[int, completion.Halves], greedy: Sequence[Sequence[str]]
) -> pd.DataFrame:
    """Compare what was written with the suffix of each text."""
    rows = []
    for half, (text,) in zip(halves.values(), greedy, strict=True):
        verbatim = completion.is_verbatim(text, half.suffix)
        rows.append((verbatim, completion.suffix_recall(text, half.suffix)))
    return pd.DataFrame(rows, index=list(halves), columns=list(COLUMNS["completion"]))


def _variation_table(
    halves: Mapping[int, completion.Halves],
    greedy: Sequence[Sequence[str]],
    sampled: Sequence[Sequence[str]],
) -> pd.DataFrame:
    """Compare the sampled texts with the greedy one after each prefix.

    As many words count as the suffix has: what a model writes behind it, it has not read there.
    """
    rows = []
    for half, (text,), samples in zip(halves.values(), greedy, sampled, strict=True):
        count = len(half.suffix.split())
        expected = completion.first_words(text, count)
        written = [completion.first_words(sample, count) for sample in samples]
        rows.append((variation.peak(expected, written), variation.agreement(expected, written)))
    return pd.DataFrame(rows, index=list(halves), columns=list(COLUMNS["variation"]))


def _written(
    generator: Generator, halves: Mapping[int, completion.Halves], sampling: Sampling
) -> list[list[str]]:
    """Return what the model writes after each prefix."""
    return generator.generate([half.prefix for half in halves.values()], sampling)


def _prepared(
    texts: Sequence[str], prepare: Callable[..., Prepared], **options: int
) -> dict[int, Prepared]:
    """Prepare the texts that can be, by their numbers. Raises InputError where none can be."""
    prepared: dict[int, Prepared] = {}
    problems = []
    for number, text in enumerate(texts):
        try:
            prepared[number] = prepare(text, **options)
        except InputError as error:
            problems.append(f"text {number}: {error}")
    if not prepared:
        raise InputError(problems[0] if problems else "there is no text to score; give one or more")
    return prepared


def _sums(
    scorer: Scorer, groups: Sequence[tuple[str, list[str]]], *, cut: bool = False
) -> list[np.ndarray]:
    """Return the log-probability (nats) of each text that may follow a prompt, by prompt."""
    sums = []
    for values in _log_probs(scorer, groups, cut=cut):
        sums.append(np.array([value.sum(dtype=np.float64) for value in values]))
    return sums


def _log_probs(
    scorer: Scorer, groups: Sequence[tuple[str, list[str]]], *, cut: bool = False
) -> list[list[np.ndarray]]:
    """Return the log-probabilities (nats) of the tokens of each text that may follow a prompt.

    Of a prompt that leaves no room, the last tokens count, as many before each text, if it may be
    `cut`; else InputError is raised.
    """
    prompts = tokenize(scorer.tokenizer, [prompt for prompt, _ in groups])
    tokens = []
    for (prompt, texts), ids in zip(groups, prompts, strict=True):
        following = tokenize(scorer.tokenizer, texts)
        room = scorer.context - max(map(len, following))
        if room < len(ids) and not cut:
            raise InputError(
                f"{prompt[:40]!r} has {len(ids) - room} tokens too many with what follows: the "
                f"model reads {scorer.context} at once; give shorter texts"
            )
        kept = ids[-room:] if room < len(ids) else ids
        tokens.append((kept, following))
    values = dict(continuation_logprobs(scorer, tokens))
    return [values[number] for number in range(len(tokens))]
