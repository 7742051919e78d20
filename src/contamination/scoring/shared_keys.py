"""Keys and values of prefixes that many rows attend to, and the mask of the rows."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache


def attention_mask(
    blocks: Tensor,
    widths: Tensor,
    longest: int,
    dtype: torch.dtype,
) -> Tensor:
    """Return what is added to attention scores, [R, 1, T, longest + T]: 0 for what a token sees.

    `blocks` are the numbers of the continuations of a row, -1 behind the last, [R, T];
    `widths` are the inputs of the rows' prefixes, [R], which are padded to the longest.
    """
    rows, inputs = blocks.shape
    # The lowest number instead of minus infinity, and no boolean: every kind of
    # attention adds it.
    lowest = torch.finfo(dtype).min
    shape = (rows, inputs, longest + inputs)
    mask = torch.full(shape, lowest, dtype=dtype, device=blocks.device)
    in_prefix = torch.arange(longest, device=blocks.device) < widths[:, None]
    # Filled for one input of each row, and copied to the others.
    mask[:, :, :longest] = mask[:, :1, :longest].masked_fill(in_prefix[:, None], 0)
    own = (blocks[:, :, None] == blocks[:, None, :]).tril_()
    mask[:, :, longest:].masked_fill_(own, 0)
    return mask[:, None]


class SharedKeys(Cache):  # type: ignore[misc]
    """Keys and values of prefixes: kept while `owners` is None.

    Then row i continues owners[i].
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.owners: Tensor | None = None
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *_: Any,
        **__: Any,
    ) -> tuple[Tensor, Tensor]:
        """Return the keys and values [.., .., tokens, ..] that a layer attends to.

        The states are those of the tokens that are read now.
        """
        if self.owners is None:
            self.kept[layer_idx] = (key_states, value_states)
            return key_states, value_states
        keys, values = self.kept[layer_idx]
        owners = self.owners.to(keys.device)
        all_keys = torch.cat([keys.index_select(0, owners), key_states], dim=-2)
        all_values = torch.cat([values.index_select(0, owners), value_states], dim=-2)
        return all_keys, all_values
