"""A model here that continues many prompts at once: those of one length share a batch.

`LocalGenerator` reads one prompt after the other, since its stores must not depend on what is read
beside it, to the last bit. Scores of texts need no such promise, and are many times faster so.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from contamination.scoring.generation import LocalGenerator, Sampling, sampling_noise


class BatchGenerator(LocalGenerator):
    """A causal model that runs here, fulfilling `Generator`, with prompts read side by side.

    The noise of a prompt is that of `LocalGenerator`, so that the texts differ only where two
    tokens are as likely as each other to the rounding of the engine.
    """

    def generate(self, prompts: Sequence[str], sampling: Sampling) -> list[list[str]]:
        """Continue the prompts, in batches of prompts with as many tokens."""
        self.require_room(sampling.tokens)
        tokens = [self.prompt_tokens(prompt, sampling.tokens) for prompt in prompts]
        results: list[list[str]] = [[] for _ in prompts]
        for batch in self._batches(tokens, sampling):
            inputs = np.stack([tokens[i] for i in batch])
            noise = [sampling_noise(sampling.seed_of(prompts[i]), sampling) for i in batch]
            texts = self.continued(inputs, np.concatenate(noise, axis=1), sampling)
            for place, prompt in enumerate(batch):
                start = place * sampling.samples
                results[prompt] = texts[start : start + sampling.samples]
        return results

    def _batches(self, tokens: Sequence[np.ndarray], sampling: Sampling) -> Iterator[list[int]]:
        """Yield the numbers of prompts that are continued together."""
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(number)
        for length, numbers in by_length.items():
            tokens_of_prompt = sampling.samples * (length + sampling.tokens)
            size = max(1, self.scorer.batch_tokens // tokens_of_prompt)
            for start in range(0, len(numbers), size):
                yield numbers[start : start + size]
