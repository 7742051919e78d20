"""The cost of a batch on a GPU by arithmetic: operations, bytes and products of gpu.py's shapes.

    .venv/bin/python benchmarks/gpu_counts.py > docs/measurements/gpu_counts.csv

One and two layers of each shape read a few tokens here; the difference is a layer. An
operation counts the bytes of its inputs and outputs, as if no cache kept them. The
output layer is this project's. Times are these counts over two rates of a card: that of
matrix products as docs/measurements/throughput.csv has it, and the memory's of its data
sheet. Nothing overlaps. So the share of products is an estimate for these operations,
and no measurement: a launch costs time as well, and a cache saves some.
"""

import argparse
import copy
import csv
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import gpu_models
import torch
from gpu_models import Shape
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from contamination.scoring.cost import sequence_workload
from contamination.scoring.head import Head
from contamination.scoring.loading import model_shape

COLUMNS = (
    "model",
    "operations",
    "gflop_per_token",
    "layers_mb_per_token",
    "head_mb_per_token",
    "products_microseconds",
    "memory_microseconds",
    "tokens_per_second",
    "fraction_of_matmul_peak",
)
TOKENS = 64
PRODUCTS = ("linear", "mm", "addmm", "bmm")
LOOKUPS = ("embedding", "index", "gather", "index_select", "scatter_")  # read what they pick
# Operations that move nothing.
VIEWS = ("view", "transpose", "t", "unsqueeze", "expand", "slice", "select", "split", "alias")
VIEWS += ("_unsafe_view", "permute", "detach", "reshape", "chunk", "flatten", "empty", "contiguous")


class Count(NamedTuple):
    """Operations of a batch, and bytes of a token in products and in all others."""

    operations: float
    of_products: float
    of_others: float

    def __add__(self, other: tuple) -> "Count":
        """Add counts column by column."""
        return Count(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> "Count":
        """Return a multiple."""
        return Count(*(factor * value for value in self))


class Counter(TorchDispatchMode):
    """Counts operations and the bytes that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0
        self.of_products = 0
        self.of_others = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it."""
        output = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in VIEWS:
            return output
        self.operations += 1
        written = sum(map(bytes_of, tensors_in(output)))
        inputs = [bytes_of(tensor) for tensor in tensors_in(args)]
        if name in PRODUCTS:
            # Weights are read once for a whole batch.
            activations = inputs[1] if name == "addmm" else inputs[0]
            self.of_products += written + activations
        elif name in LOOKUPS:
            self.of_others += 2 * min([written, *inputs[2:]])
        elif name == "copy_":
            self.of_others += written + sum(inputs[1:])
        else:
            self.of_others += written + sum(inputs)
        return output

    def count(self) -> Count:
        """Return what was counted, for a token."""
        return Count(self.operations, self.of_products / TOKENS, self.of_others / TOKENS)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)


def bytes_of(tensor: Tensor) -> int:
    """Return the bytes that a tensor has in memory; what is repeated counts once."""
    return min(tensor.nbytes, tensor.untyped_storage().nbytes())


def layers_counted(shape: Shape, layers: int) -> tuple[Count, torch.nn.Module]:
    """Return the count of a network with this number of layers, and its output layer."""
    config = copy.deepcopy(shape.config)
    config.num_hidden_layers = layers
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    network.to_empty(device="cpu")  # values do not matter
    ids = torch.zeros(1, TOKENS, dtype=torch.int64)
    with torch.inference_mode(), Counter() as counter:
        network.base_model(input_ids=ids, use_cache=False)
    return counter.count(), network.get_output_embeddings()


def head_counted(layer: torch.nn.Module) -> Count:
    """Return the count of this project's output layer."""
    hidden = torch.zeros(TOKENS, layer.in_features, dtype=torch.bfloat16)
    head = Head(layer, None, rows=TOKENS)
    tokens = torch.zeros(TOKENS, dtype=torch.int64)
    with torch.inference_mode():
        head(hidden, tokens)  # its buffer is made once
        with Counter() as counter:
            head(hidden, tokens)
    return counter.count()


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", choices=gpu_models.SHAPES)
    parser.add_argument("--products", type=float, default=684.0, help="TFLOP/s in bfloat16")
    parser.add_argument("--memory", type=float, default=3.35, help="TB/s")
    options = parser.parse_args()
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    for name in options.shapes or gpu_models.SHAPES:
        row = row_of(gpu_models.SHAPES[name], options.products * 1e12, options.memory * 1e12)
        table.writerow({"model": name} | row)


def row_of(shape: Shape, flops_per_second: float, bytes_per_second: float) -> dict[str, float]:
    """Return what was counted and computed for a shape.

    Parameters
    ----------
    shape
        Of the network.
    flops_per_second
        Rate of matrix products of the card.
    bytes_per_second
        Rate of its memory.
    """
    one, _ = layers_counted(shape, 1)
    two, layer = layers_counted(shape, 2)
    more = two + one.times(-1)
    body = one + more.times(shape.config.num_hidden_layers - 1)
    head = head_counted(layer)
    length = 3 * shape.longest // 4  # of a sequence, on average
    work = sequence_workload([length], 1, shape.longest)
    flops = model_shape(shape.config).flops(work) / length
    products = flops / flops_per_second
    memory = (body.of_others + head.of_others) / bytes_per_second
    return {
        "operations": round(body.operations),
        "gflop_per_token": round(flops / 1e9, 3),
        "layers_mb_per_token": round((body.of_products + body.of_others) / 1e6, 2),
        "head_mb_per_token": round((head.of_products + head.of_others) / 1e6, 2),
        "products_microseconds": round(1e6 * products, 2),
        "memory_microseconds": round(1e6 * memory, 2),
        "tokens_per_second": round(1 / (products + memory)),
        "fraction_of_matmul_peak": round(products / (products + memory), 3),
    }


if __name__ == "__main__":
    main()
