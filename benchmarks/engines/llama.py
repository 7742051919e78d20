"""llama.cpp, which multiplies the packed weights: a string at a time, logits of all its tokens."""

from collections.abc import Sequence

import torch
from llama_cpp import Llama
from measure import arguments, report
from transformers import AutoTokenizer

directory, _, _, strings = arguments()
tokenizer = AutoTokenizer.from_pretrained(directory)
ids = {text: [tokenizer.bos_token_id, *tokenizer(text)["input_ids"]] for text in strings}
model = Llama(
    str(directory / "model.gguf"),
    n_ctx=max(map(len, ids.values())),
    n_batch=512,
    n_threads=torch.get_num_threads(),
    n_threads_batch=torch.get_num_threads(),
    n_gpu_layers=-1,
    logits_all=True,
    verbose=False,
)


def score(texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the number of tokens and the log-likelihood of every text."""
    found = []
    for text in texts:
        model.reset()
        model.eval(ids[text][:-1])
        logits = torch.from_numpy(model.scores[: model.n_tokens])
        targets = torch.tensor(ids[text][1:])
        chosen = logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(1)
        found.append((len(targets), float(chosen.double().sum())))
    return found


report(score, strings)
