"""Does AMD's zentorch read faster on a CPU than torch itself? Tokens per second, in turn.

python benchmarks/cpu_kernels.py [ROUNDS]

Needs `pip install zentorch==2.13.0.2`, which no other part of the project uses. Two shapes, random
weights, bfloat16, every variant once a round: the layers of the model as the engine calls them, the
same with zentorch's attention, and compiled by torch and by zentorch; then one layer's attention
alone, torch's fused kernel and zentorch's. Prints medians, the seconds of the first call, which
compiles, and how far states are from those of the first variant at most; writes
docs/measurements/cpu_kernels.csv.
"""

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
import zentorch  # noqa: F401 - registers a backend of torch.compile, and its kernels
from rich.console import Console
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, GPT2Config, GPT2Model

from contamination.cli.printing import print_table
from contamination.files import replacing

TABLE = Path(__file__).parents[1] / "docs" / "measurements" / "cpu_kernels.csv"
COLUMNS = ("model", "variant", "tokens_per_second", "ratio", "first_call_seconds", "apart")
SHAPES = {  # n_embd, n_layer, n_head, context, sequences of a batch
    "5.3M": (256, 4, 4, 256, 16),
    "124M": (768, 12, 12, 1024, 2),
}
VOCABULARY = 50_257

Call = Callable[[], torch.Tensor]


def zentorch_attention(module, q, k, v, mask, dropout=0.0, scaling=None, **_):
    """Causal attention of whole sequences, as transformers asks for it."""
    assert mask is None
    states = torch.ops.zentorch.zentorch_sdpa(q, k, v, dropout, True, scale=scaling)[0]
    return states.transpose(1, 2).contiguous(), None


def layers(shape: tuple[int, ...]) -> dict[str, Call]:
    """The layers of a model of that shape on one batch, in four variants."""
    n_embd, n_layer, n_head, context, batch = shape
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=context,
        n_embd=n_embd,
        n_layer=n_layer,
        n_head=n_head,
        activation_function="gelu_pytorch_tanh",
    )
    model = GPT2Model(config).to(torch.bfloat16).eval()
    other = GPT2Model(copy.deepcopy(config)).to(torch.bfloat16).eval()
    other.load_state_dict(model.state_dict())
    AttentionInterface.register("zentorch", zentorch_attention)
    other.set_attn_implementation("zentorch")
    ids = torch.randint(VOCABULARY, (batch, context))
    variants: dict[str, Callable] = {
        "torch": model,
        "zentorch's attention": other,
        "compiled by torch": torch.compile(model, dynamic=False),
        "compiled by zentorch": torch.compile(model, backend="zentorch", dynamic=False),
    }
    return {
        name: lambda read=read: read(ids, use_cache=False).last_hidden_state
        for name, read in variants.items()
    }


def attention(shape: tuple[int, ...]) -> dict[str, Call]:
    """One layer's attention of a batch, by both kernels."""
    n_embd, _, n_head, context, batch = shape
    torch.manual_seed(0)
    q, k, v = torch.randn(3, batch, n_head, context, n_embd // n_head, dtype=torch.bfloat16)
    return {
        "attention: torch": lambda: scaled_dot_product_attention(q, k, v, is_causal=True),
        "attention: zentorch": lambda: torch.ops.zentorch.zentorch_sdpa(q, k, v, 0.0, True)[0],
    }


def measure(calls: dict[str, Call], rounds: int) -> list[tuple[float, float, float]]:
    """First call and median of the others (seconds), largest difference from the first variant."""
    first = []
    results = []
    times: list[list[float]] = [[] for _ in calls]
    for call in calls.values():
        begun = time.perf_counter()
        results.append(call().float())
        first.append(time.perf_counter() - begun)
    for _ in range(rounds):
        for call, kept in zip(calls.values(), times, strict=True):
            begun = time.perf_counter()
            call()
            kept.append(time.perf_counter() - begun)
    medians = [float(torch.tensor(kept).median()) for kept in times]
    apart = [float((each - results[0]).abs().max()) for each in results]
    return list(zip(first, medians, apart, strict=True))


@torch.inference_mode()
def main() -> None:
    """Run the variants in turn and print them."""
    rounds = int((sys.argv[1:] or ["9"])[0])
    rows = []
    for model, shape in SHAPES.items():
        tokens = shape[3] * shape[4]
        for calls in (layers(shape), attention(shape)):
            found = measure(calls, rounds)
            for name, (first, seconds, apart) in zip(calls, found, strict=True):
                ratio = found[0][1] / seconds
                rows.append((model, name, tokens / seconds, ratio, first, apart))
    table = pd.DataFrame(rows, columns=COLUMNS).round(3)
    with replacing(TABLE) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
    print_table(COLUMNS, table.astype(str).to_numpy().tolist(), title="bfloat16 on a CPU")
    Console().print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
