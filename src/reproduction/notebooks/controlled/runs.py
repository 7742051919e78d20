"""The training runs of controlled contamination: what varies, and how rows of scores are named.

Shi (section 6) varies the size of the text, the duplication count of an example and the learning
rate.
"""

from dataclasses import dataclass

from contamination.errors import InputError

SIZE, COUNT, RATE = "corpus_size", "dup_count", "learning_rate"  # experiments: what varies
BASE, TRAINED = "base", "trained"
KEYS = (
    *("experiment", "contaminant", "dataset", "model"),
    *("corpus_tokens", "dup_count", "learning_rate"),
)


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str
    corpus_tokens: int  # of the mixture, with contaminants; less than a block of them is dropped
    learning_rate: float
    dup_counts: tuple[int, ...] = (1,)  # member i has that of i mod their number


@dataclass(frozen=True)
class TrainingRuns:
    """The training runs that the experiments need. Every experiment changes one thing.

    Raises InputError for fewer than two values of what is varied, one that is not positive or comes
    twice, or `fixed_tokens` that are not in `sizes`.
    """

    sizes: tuple[int, ...]  # tokens of a mixture; contaminants are injected once
    learning_rate: float  # of all runs but those of `other_rates`
    other_rates: tuple[float, ...]
    fixed_tokens: int  # one of `sizes`, where duplication counts and learning rates are compared
    dup_counts: tuple[int, ...]  # in one mixture of that size, each for an equal part of members
    batch_size: int = 8  # blocks of a step

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        varied = {
            "sizes": self.sizes,
            "learning_rate and other_rates": (self.learning_rate, *self.other_rates),
            "dup_counts": self.dup_counts,
        }
        for name, values in varied.items():
            if len(values) < 2 or min(values) <= 0 or len(set(values)) < len(values):
                raise InputError(f"{name} {list(values)}: give two or more positive numbers")
        if self.fixed_tokens not in self.sizes:
            raise InputError(
                f"fixed_tokens {self.fixed_tokens}: give one of the sizes {list(self.sizes)}"
            )

    @property
    def by_experiment(self) -> dict[str, tuple[Run, ...]]:
        """Experiment -> its runs; one that serves two experiments is in both."""
        sizes = tuple(Run(f"size-{n}", n, self.learning_rate) for n in sorted(self.sizes))
        fixed = next(run for run in sizes if run.corpus_tokens == self.fixed_tokens)
        others = (Run(f"rate-{r:g}", self.fixed_tokens, r) for r in self.other_rates)
        counts = Run("dup-counts", self.fixed_tokens, self.learning_rate, self.dup_counts)
        return {SIZE: sizes, COUNT: (counts,), RATE: (fixed, *others)}
