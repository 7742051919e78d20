"""Settings of notebook 10, and the names of its kinds of books and of its scores."""

from pydantic import Field

from reproduction.run.settings import NotebookSettings

AGAIN = "read again"
ONCE = "read once"
UNREAD = "unread"
ELSEWHERE = "unread, elsewhere"
TRUTHS = (AGAIN, ONCE, UNREAD, ELSEWHERE)

SCORE = "min_k_20"  # of the threshold
SCORES = {  # of Shi's figure 3, with their names there
    SCORE: "Min-20% Prob",
    "loss": "PPL",
    "neighbour": "Neighbor",
    "zlib": "Zlib",
    "lowercase": "Lowercase",
}


class Settings(NotebookSettings):
    """Books, how they are read again, and how they are cut.

    Attributes
    ----------
    words
        Number of words of a snippet.
    snippets
        Number of snippets of a book.
    books
        Number of books of each package and kind, for validation and for the audit each.
    epochs, learning_rate
        Epochs and learning rate with which some books are read again.
    neighbours
        Number of neighbours of each snippet, for the score of that name.
    """

    words: int
    snippets: int
    books: int
    epochs: int
    learning_rate: float
    neighbours: int = Field(ge=1)
