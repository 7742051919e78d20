"""What the silence of a control is worth: how well it predicts the texts, beside the model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contamination.scoring.store import Store

# A tenth more nats a character is what 0.3 times the parameters cost (Kaplan et al.,
# 2020: the loss falls as N^-0.076). So much smaller a control is no longer its like.
CLEARLY = 1.1


@dataclass(frozen=True)
class ControlFit:
    """Mean nats per character of the tested texts, under a model and under its control.

    A control that predicts them clearly less well may lack what it takes to prefer
    their order or side. But a model that has read texts predicts them better as well,
    so this never takes a verdict away.
    """

    model: float
    control: float

    @property
    def is_weaker(self) -> bool:
        """Whether the control needs a tenth more nats a character than the model."""
        return self.control > CLEARLY * self.model

    @property
    def in_words(self) -> str:
        """Return how well the control predicts the texts, and what follows, for people."""
        needs = f"it needs {self.control:.3g} nats a character, the model {self.model:.3g}"
        if self.is_weaker:
            why = "it has learnt less, or the model has read the texts"
            return f"but weak ({why}): {needs}"
        if self.model > CLEARLY * self.control:
            return f"and predicts the texts better than the model: {needs}"
        return f"and predicts the texts about as well as the model: {needs}"


def fit_of_control(model: float | None, control: float | None) -> ControlFit | None:
    """Return the fit of both models from their nats per character; None if one is unknown."""
    if model is None or control is None:
        return None
    return ControlFit(model=model, control=control)


def nats_per_token(store: "Store") -> float:
    """Return the mean nats of the tokens of a store, without shuffled orderings.

    Raises InputError if a sequence is missing, or a part is damaged.
    """
    nats = 0.0
    for sequence in store.sequences():
        nats -= float(sequence.nats.sum(dtype="float64"))
    return nats / store.tokens_stored(permutations=0)
