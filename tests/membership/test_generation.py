"""What is written against a loop without a cache, and what a model that knows texts writes."""

import pytest
import torch

from contamination.errors import InputError
from contamination.membership.generation import completion_scores, continuations, rouge_l
from contamination.scoring.local import TransformersScorer
from fakes.float64_loop import random_ids
from fakes.made_up_scorer import MadeUpScorer

CONTEXT = 16


@pytest.fixture
def scorer(float32, model_directory) -> TransformersScorer:
    return TransformersScorer(model_directory)


@torch.inference_mode()
def greedy(scorer, prompt, new_tokens: int) -> list[int]:
    ids = [scorer.start, *prompt.tolist()][-(CONTEXT - new_tokens) :]
    begin = len(ids)
    for _ in range(new_tokens):
        best = int(scorer.model(torch.tensor([ids])).logits[0, -1].argmax())
        if best == scorer.tokenizer.eos_token_id:
            break
        ids.append(best)
    return ids[begin:]


@pytest.mark.parametrize(("batch_tokens", "new_tokens"), [(1, 6), (40, 6), (1000, 1)])
def test_greedy_continuations_in_batches(scorer, batch_tokens, new_tokens):
    scorer.batch_tokens = batch_tokens
    prompts = [random_ids(n, n) for n in (3, 0, 9, 1, 40, 10, 3)]
    found = continuations(scorer, prompts, new_tokens=new_tokens)
    for prompt, ids in zip(prompts, found, strict=True):
        assert ids.tolist() == greedy(scorer, prompt, new_tokens)


def test_a_continuation_ends_before_the_end_of_text(scorer):
    """The bias makes the end of text the best token everywhere; then the second best."""
    with torch.no_grad():
        weight = scorer.model.transformer.wte.weight
        drawn = torch.randn(weight.shape[1], generator=torch.Generator().manual_seed(0))
        weight[scorer.tokenizer.eos_token_id] = 100 * weight.std() * drawn
    prompts = [random_ids(n, n) for n in range(1, 9)]
    found = continuations(scorer, prompts, new_tokens=7)
    lengths = {len(ids) for ids in found}
    assert min(lengths) < 7
    for prompt, ids in zip(prompts, found, strict=True):
        assert scorer.tokenizer.eos_token_id not in ids
        assert ids.tolist() == greedy(scorer, prompt, 7)


def test_what_was_learnt_comes_back_and_nothing_else_does(taught, members, non_members):
    known, new = (completion_scores(taught, texts) for texts in (members, non_members))
    assert known["verbatim"].mean() > 0.9 and new["verbatim"].mean() == 0
    assert known["rouge_l_f1"].min() > new["rouge_l_f1"].mean() + 0.3


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda s: continuations(s, [], new_tokens=0), "0 new tokens"),
        (lambda s: continuations(MadeUpScorer(s.tokenizer), [], new_tokens=3), "runs here"),
        (lambda s: completion_scores(s, ["one two", "lamp"]), "text 1 "),
    ],
)
def test_what_cannot_be_written_is_refused(taught, call, named):
    with pytest.raises(InputError, match=named):
        call(taught)


@pytest.mark.parametrize(
    ("found", "expected", "common"),
    [
        ("a b c d", "a x c d", 3),
        ("The CAT, sat!", "the cat sat", 3),
        ("c b a", "a b c", 1),
        ("a b", "", 0),
        ("", "", 0),
    ],
)
def test_rouge_l_counts_words_in_order_whatever_their_case(found, expected, common):
    ours, theirs = len(found.split()), len(expected.split())
    f1 = 2 * common / max(1, ours + theirs)
    assert rouge_l(found, expected) == (common / max(1, theirs), f1)
