"""Settings of notebook 06."""

from reproduction.run.settings import NotebookSettings


class Settings(NotebookSettings):
    """Texts that are scored, and the models that score WikiMIA.

    Attributes
    ----------
    models
        Names for `find_model` of models that score WikiMIA.
    references
        Name of a model -> that of the smaller one that "Smaller Ref" compares it with.
    lengths
        Words of a text.
    texts
        Most texts of known membership of a length, on each side.
    neighbours
        Number of neighbours of each text for "Neighbor"; 0 leaves the score out.
    renamed
        Public sets whose questions are scored as printed and about somebody else.
    """

    models: tuple[str, ...]
    references: dict[str, str]
    lengths: tuple[int, ...]
    texts: int
    neighbours: int
    renamed: tuple[str, ...] = ()
