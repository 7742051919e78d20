"""What the experiments of controlled contamination vary, and the training runs they need.

Shi (section 6.2): size of the training text, occurrences of an example, learning rate.
"""

from dataclasses import dataclass

from contamination.errors import InputError

SIZE, TIMES, RATE = "corpus_size", "occurrences", "learning_rate"  # experiments


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes
    ----------
    corpus_tokens : of the mixture, contaminants included; less than a block of them is dropped.
    occurrences : member i is injected occurrences[i mod their number] times.
    """

    name: str
    corpus_tokens: int
    learning_rate: float
    occurrences: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Plan:
    """What is varied. Every experiment changes one thing.

    Attributes
    ----------
    sizes : tokens of a mixture, ascending; contaminants occur once.
    learning_rate : of all runs but those of `other_rates`.
    fixed_tokens : one of `sizes`, where occurrences and learning rates are compared.
    occurrences : in one mixture of that size, each for an equal part of the members.
    batch_size : blocks of a step.

    Raises
    ------
    InputError
        Fewer than two values of what is varied, one that is not positive or comes twice, or
        `fixed_tokens` that are not in `sizes`.
    """

    sizes: tuple[int, ...]
    learning_rate: float
    other_rates: tuple[float, ...]
    fixed_tokens: int
    occurrences: tuple[int, ...]
    batch_size: int = 8

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        varied = {
            "sizes": self.sizes,
            "learning_rate and other_rates": (self.learning_rate, *self.other_rates),
            "occurrences": self.occurrences,
        }
        for name, values in varied.items():
            if len(values) < 2 or min(values) <= 0 or len(set(values)) < len(values):
                raise InputError(f"{name} {list(values)}: give two or more positive numbers")
        if self.fixed_tokens not in self.sizes:
            raise InputError(
                f"fixed_tokens {self.fixed_tokens}: give one of the sizes {list(self.sizes)}"
            )

    @property
    def runs(self) -> dict[str, tuple[Run, ...]]:
        """Experiment -> its runs; one that serves two experiments is in both."""
        sizes = tuple(Run(f"size-{n}", n, self.learning_rate) for n in sorted(self.sizes))
        fixed = next(run for run in sizes if run.corpus_tokens == self.fixed_tokens)
        others = (Run(f"rate-{r:g}", self.fixed_tokens, r) for r in self.other_rates)
        times = Run("occurrences", self.fixed_tokens, self.learning_rate, self.occurrences)
        return {SIZE: sizes, TIMES: (times,), RATE: (fixed, *others)}
