"""A scorer of Inspect that reads the log-probability of what a test set publishes.

Inspect finds it by the entry point of this package, as the scorer
`contamination/log_probability`.
"""

from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from contamination.testsets.harness_items import sample_item


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def log_probability() -> Scorer:
    """Score a sample by the log-probability of its published text, in nats, under the model.

    The text is the input, and on a line of its own the right choice, or else the
    target, as the set `inspect:FILE` has it; it is sent as one prompt, whatever the
    solver has asked. A sample is left unscored, with the reason, where the provider
    gives no log-probabilities of prompts, or those of other tokens, such as a chat
    template around the text. The value alone is no evidence of contamination: what a
    text is worth to a clean model is not known.
    """
    config = GenerateConfig(prompt_logprobs=1, max_tokens=1, temperature=0)

    async def score(state: TaskState, target: Target) -> Score:
        prompt = state.input
        if not isinstance(prompt, str):
            messages = [message for message in prompt if message.role != "assistant"]
            prompt = "\n".join(message.text for message in messages)
        choices = [choice.value for choice in state.choices]
        text = sample_item(prompt, choices, list(target))["text"]
        output = await get_model().generate(text, config=config)
        logprobs = output.choices[0].prompt_logprobs if output.choices else None
        if logprobs is None:
            return Score.unscored(
                reason="scoring_failed",
                explanation="the provider gives no log-probabilities of prompts; "
                "vllm-completions does",
            )
        sent = _solid(text)
        read = _solid("".join(token.token for token in logprobs.content))
        if not sent.endswith(read):
            return Score.unscored(
                reason="scoring_failed",
                explanation="the tokens are not those of the text; ask a provider "
                "without a chat template",
            )
        value = sum(token.logprob for token in logprobs.content)
        tokens = len(logprobs.content)
        left_out = len(sent) - len(read)
        return Score(
            value=value,
            explanation=f"{tokens} tokens; none for the first {left_out} characters",
            metadata={"tokens": tokens, "text": text},
        )

    return score


def _solid(text: str) -> str:
    """Return a text without its blanks, which tokenizers show in different ways."""
    return "".join(text.split())
