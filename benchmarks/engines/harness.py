"""lm-evaluation-harness: `loglikelihood` of whole strings after its prefix token."""

from collections.abc import Sequence

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from measure import arguments, report

directory, dtype, batch, strings = arguments()
device = "cuda" if torch.cuda.is_available() else "cpu"
model = HFLM(pretrained=str(directory), device=device, dtype=dtype, batch_size=batch)


def score(texts: Sequence[str]) -> int:
    """Log-likelihood of every text; returns the number of tokens."""
    requests = [Instance("loglikelihood", {}, ("", text), i) for i, text in enumerate(texts)]
    model.loglikelihood(requests, disable_tqdm=True)
    return sum(len(model.tok_encode(text, add_special_tokens=False)) for text in texts)


report(score, strings)
