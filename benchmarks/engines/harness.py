"""lm-evaluation-harness: `loglikelihood` of whole strings after its prefix token."""

from collections.abc import Sequence

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from measure import arguments, report

directory, dtype, batch, strings = arguments()
device = "cuda" if torch.cuda.is_available() else "cpu"
model = HFLM(pretrained=str(directory), device=device, dtype=dtype, batch_size=batch)


def score(texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the number of tokens and the log-likelihood of every text."""
    requests = [Instance("loglikelihood", {}, ("", text), i) for i, text in enumerate(texts)]
    found = model.loglikelihood(requests, disable_tqdm=True)
    tokens = [len(model.tok_encode(text, add_special_tokens=False)) for text in texts]
    return [(n, nats) for n, (nats, _) in zip(tokens, found, strict=True)]


report(score, strings)
