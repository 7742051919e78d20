"""Neighbours of a text: small changes that a model which has not seen it should mind little.

Mattern et al. (2023) compare the loss of a text with that of its neighbours, which they draw from
BERT with dropout in the embeddings. `word_neighbours` swaps and leaves out words at random;
`character_neighbours` and `blank_neighbours` change letters and blanks, as Maini et al. (2024) also
do. `MaskedLM` draws a substitute from the `CANDIDATES` most probable tokens in proportion to their
probability, the token itself left out; the rest of the text stays as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from transformers import AutoModelForMaskedLM, AutoTokenizer

from contamination.errors import InputError
from contamination.scoring.loading import ModelSource, explain_load_errors, read_config

SHARE = 0.1  # of the words or tokens that a neighbour changes
CANDIDATES = 10
MOST_NEIGHBOURS = 1_000  # of a text: all lie in memory, and the model reads each of them whole
LOGITS = 1 << 25  # numbers of the output layer that exist at a time
MARGIN = 2  # positions that RoBERTa and its kin keep for padding

# Text, count and `rng=` -> so many neighbours of the text; InputError where it has none.
Perturbation = Callable[..., list[str]]
_Spans = list[tuple[tuple[int, int], int]]  # ((first, past the last character), token)


def word_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Swap or leave out words: a tenth of them, one at least, with a fair coin for each.

    A swap is with the next word. Spaces and line ends stay where they are. Raises InputError for a
    text of one word, which can neither be swapped nor left out.
    """
    return _moved(re.split(r"(\s+)", text), text, "word", count, rng)


def character_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Swap or leave out characters that are no blanks, as `word_neighbours` does words.

    Raises InputError for a text of one such character.
    """
    parts = [part for character in text for part in (character, "")]
    return _moved(parts, text, "character", count, rng)


def blank_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Double a blank: in a tenth of the gaps between words, one at least.

    Raises InputError for a text without a gap.
    """
    gaps = [match.start() for match in re.finditer(r"(?<=\S)\s(?=\s*\S)", text)]
    if not gaps:
        raise InputError(f"{text[:40]!r} has one word and so no neighbour; leave it out")
    changes = max(1, round(SHARE * len(gaps)))
    chosen = [set(rng.choice(gaps, size=changes, replace=False)) for _ in range(count)]
    return ["".join(c * (1 + (i in where)) for i, c in enumerate(text)) for where in chosen]


def _moved(
    parts: Sequence[str], text: str, what: str, count: int, rng: np.random.Generator
) -> list[str]:
    """Swap or leave out some of the even `parts`; the odd ones separate them."""
    places = [i for i in range(0, len(parts), 2) if parts[i].strip()]
    if len(places) < 2:
        raise InputError(f"{text[:40]!r} has one {what} and so no neighbour; leave it out")
    changes = min(max(1, round(SHARE * len(places))), len(places) - 1)
    made = []
    for _ in range(count):
        new = list(parts)
        for k in sorted(rng.choice(len(places) - 1, size=changes, replace=False)):
            here, following = places[k], places[k + 1]
            if rng.random() < 0.5:
                new[here], new[following] = new[following], new[here]
            else:
                new[here] = new[here + 1] = ""
        made.append("".join(new))
    return made


CHANGES: Mapping[str, Perturbation] = {
    "words": word_neighbours,
    "letters": character_neighbours,
    "blanks": blank_neighbours,
}


class MaskedLM:
    """A fill-mask model as a `Perturbation`, from a directory or a hub id.

    Raises InputError if there is no such model, or no fast tokenizer with a mask: another one
    does not say where tokens stand.
    """

    def __init__(self, name: Path | str) -> None:
        read_config(ModelSource(str(name)))
        with explain_load_errors(str(name)):
            self._tokenizer = AutoTokenizer.from_pretrained(name)
            self._model = AutoModelForMaskedLM.from_pretrained(name).eval()
        if self._tokenizer.mask_token_id is None or not self._tokenizer.is_fast:
            raise InputError(f"{name}: no fast tokenizer with a mask; give a fill-mask model")
        self._model.to(PartialState().device)
        limit = self._model.config.max_position_embeddings - MARGIN
        self._width = min(self._tokenizer.model_max_length, limit)
        self._special = sorted(set(self._tokenizer.all_special_ids))

    def __call__(self, text: str, count: int, *, rng: np.random.Generator) -> list[str]:
        """Return neighbours in which a tenth of the tokens, one at least, is another.

        Raises InputError for a text without a token.
        """
        encoded = self._tokenizer(
            text,
            truncation=True,
            max_length=self._width,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        windows = [np.array(ids) for ids in encoded["input_ids"]]
        places = [
            (number, int(position))
            for number, ids in enumerate(windows)
            for position in np.flatnonzero(~np.isin(ids, self._special))
        ]
        if not places:
            raise InputError(f"{text[:40]!r} has no token for the masked model; leave it out")
        changes = max(1, round(SHARE * len(places)))
        chosen = [rng.choice(len(places), size=changes, replace=False) for _ in range(count)]
        spans: list[_Spans] = [[] for _ in range(count)]
        for number, ids in enumerate(windows):
            masks = np.zeros((count, len(ids)), dtype=bool)
            for mask, indices in zip(masks, chosen, strict=True):
                mask[[places[i][1] for i in indices if places[i][0] == number]] = True
            for row, position, token in self._substitutes(ids, masks, rng):
                spans[row].append((encoded["offset_mapping"][number][position], token))
        return [self._fill(text, changed) for changed in spans]

    def _substitutes(
        self, ids: np.ndarray, masks: np.ndarray, rng: np.random.Generator
    ) -> Iterator[tuple[int, int, int]]:
        """Yield (row of `masks`, position, token drawn for it)."""
        step = max(1, LOGITS // (len(ids) * self._model.config.vocab_size))
        for start in range(0, len(masks), step):
            where = np.argwhere(masks[start : start + step])
            masked = np.where(masks[start : start + step], self._tokenizer.mask_token_id, ids)
            with torch.inference_mode():
                inputs = torch.from_numpy(masked).to(self._model.device)
                logits = self._model(input_ids=inputs).logits
                logits = logits[where[:, 0], where[:, 1]].float()
                logits[:, self._special] = -torch.inf
                logits[range(len(where)), ids[where[:, 1]]] = -torch.inf
                best = logits.topk(min(CANDIDATES, logits.shape[1]))
                chances = best.values.double().softmax(1).cpu().numpy()
            for (row, position), tokens, chance in zip(where, best.indices, chances, strict=True):
                drawn = tokens[rng.choice(len(tokens), p=chance)]
                yield start + int(row), int(position), int(drawn)

    def _fill(self, text: str, spans: _Spans) -> str:
        for (first, stop), token in sorted(spans, reverse=True):
            old = text[first:stop]
            space = old[: len(old) - len(old.lstrip())]  # some tokenizers count it to the token
            new = self._tokenizer.decode([token]).removeprefix("##").strip()
            text = text[:first] + space + new + text[stop:]
        return text
