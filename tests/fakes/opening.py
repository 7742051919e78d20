"""Access that opens made-up scorers in the place of models."""

from contamination.scoring.models import ModelEntry
from fakes.made_up_scorer import MadeUpScorer
from reproduction.run.grid import Access


class Opening(Access):
    """`opened` keeps the names in their order, `broken` has what opening one raises."""

    def __init__(self, tokenizer, **broken: BaseException) -> None:
        self.tokenizer = tokenizer
        self.opened: list[str] = []
        self.broken = broken
        self.scorers: dict[str, MadeUpScorer] = {}

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        self.opened.append(entry.name)
        if entry.name in self.broken:
            raise self.broken[entry.name]
        if entry.name not in self.scorers:
            self.scorers[entry.name] = self.made(entry.name)
        return self.scorers[entry.name]

    def made(self, name: str) -> MadeUpScorer:
        return MadeUpScorer(self.tokenizer, revision=name)
