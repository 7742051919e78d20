"""Settings of notebook 07."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Spans that are scored, and the scores.

    Attributes
    ----------
    length
        Tokens of a span, at most the context of the model, so that each token is read
        after all of its span, as in the paper.
    k, other_k
        Percentages of Min-K%.
    validation_spans
        Most spans of each kind of text that was never planted.
    validation_files
        Canary set -> file of such text, instead of the set's own file.
    """

    length: int
    k: float
    other_k: tuple[float, ...]
    validation_spans: int
    validation_files: dict[str, str]
