"""The scorer inside Inspect itself, found by its entry point (`scripts/harnesses.sh`)."""

import math

import pytest

from fakes.harness_logs import ITEMS

pytest.importorskip("inspect_ai")

TEXTS = [f"{each['question']}\n{each['choices'][each['answer']]}" for each in ITEMS[:3]]


@pytest.mark.parametrize(
    ("around", "given", "said"),
    [
        ((), True, "tokens; none for the first 4 characters"),
        (("<user>", "<model>"), True, "not those of the text"),
        ((), False, "gives no log-probabilities"),
    ],
)
def test_a_text_has_its_log_probability_or_none_with_the_reason(
    around, given, said, tmp_path
) -> None:
    """Tokens are words, and each costs as many nats as it has characters."""
    from inspect_ai import Task, eval
    from inspect_ai._util.registry import registry_create
    from inspect_ai.dataset import Sample
    from inspect_ai.model import Logprob, Logprobs, ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import multiple_choice

    def answer(messages, tools, choice, config) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", "ANSWER: A")
        output.usage = ModelUsage()  # else it counts tokens by a tokenizer that it fetches
        if config.prompt_logprobs and given:
            before, after = around or ("", "")
            _, *words = f"{before} {messages[-1].text} {after}".split()  # the first has no value
            read = [Logprob(token=f" {word}", logprob=-len(word)) for word in words]
            output.choices[0].prompt_logprobs = Logprobs(content=read)
        return output

    samples = [
        Sample(input=each["question"], choices=each["choices"], target="ABCD"[each["answer"]])
        for each in ITEMS[:3]
    ]
    model = get_model("mockllm/model", custom_outputs=answer)
    scorer = registry_create("scorer", "contamination/log_probability")
    task = Task(dataset=samples, solver=multiple_choice(), scorer=scorer)
    (log,) = eval(task, model=model, log_dir=str(tmp_path), display="none")
    for sample, text in zip(log.samples, TEXTS, strict=True):
        (found,) = sample.scores.values()
        assert said in found.explanation
        if given and not around:
            assert found.value == -sum(map(len, text.split()[1:]))
            assert found.metadata == {"tokens": len(text.split()) - 1, "text": text}
        else:
            assert math.isnan(found.value)
