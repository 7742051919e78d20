"""Settings of notebook 06."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Texts that are scored, and the models that score WikiMIA.

    Attributes
    ----------
    models : names for `find_model` of models that score WikiMIA.
    references : name of a model -> that of the smaller one that "Smaller Ref" compares
        it with.
    lengths : words of a text.
    texts : most texts of known membership of a length, on each side.
    neighbours : of each text for "Neighbor"; 0 leaves it out.
    renamed : public sets whose questions are scored as printed and about somebody else.
    """

    models: tuple[str, ...]
    references: dict[str, str]
    lengths: tuple[int, ...]
    texts: int
    neighbours: int
    renamed: tuple[str, ...] = ()
