"""Settings of notebook 08."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Texts that are scored, and how models are fine-tuned in between.

    Attributes
    ----------
    models : names for `find_model` of models that score the public set. Without any, the models
        trained here score texts of the run.
    length : tokens of a text.
    shortest : fewest tokens of a public text; None for `length`.
    texts : most texts of a domain, on each side.
    spare : most texts of a domain that models trained here read in fine-tuning.
    epochs : how often they read them.
    learning_rate : of fine-tuning.
    asked : most texts of a domain, on each side, that the clean model also continues, completes
        and chooses.
    """

    models: tuple[str, ...]
    length: int
    shortest: int | None
    texts: int
    spare: int
    epochs: int
    learning_rate: float
    asked: int
