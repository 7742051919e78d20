"""The loop that one writes first: a sequence at a time, float32, full log-softmax, `.item()`."""

from collections.abc import Sequence

import torch
from measure import arguments, report
from transformers import AutoModelForCausalLM, AutoTokenizer

directory, _, _, strings = arguments()
device = "cuda" if torch.cuda.is_available() else "cpu"
tokenizer = AutoTokenizer.from_pretrained(directory)
model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).to(device).eval()


def score(texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the number of tokens and the log-likelihood of every text."""
    found = []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]
        inputs = torch.tensor([ids], device=device)
        with torch.no_grad():
            logits = model(inputs[:, :-1]).logits
        log_probs = torch.log_softmax(logits, dim=-1)
        found.append((len(ids) - 1, log_probs.gather(2, inputs[:, 1:, None]).sum().item()))
    return found


report(score, strings)
