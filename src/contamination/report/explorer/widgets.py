"""The explorer in a notebook: five dropdowns, and what they choose.

A set is read from its stores when it is first chosen, and kept. Texts are other people's: all of
them are escaped.
"""

import base64
import io
from collections.abc import Hashable, Iterable, Sequence
from html import escape
from typing import Any

import matplotlib.pyplot as plt
from ipywidgets import HTML, Box, Dropdown, Layout, VBox
from matplotlib.figure import Figure

from contamination.audit.battery import DEFAULT_TESTS, TESTS
from contamination.errors import InputError
from contamination.report.explorer.charts import plot_by_shard, plot_null
from contamination.report.explorer.outcomes import Outcome
from contamination.report.explorer.scored import ScoredSet
from contamination.report.explorer.views import View, Viewer
from contamination.report.explorer.wording import plain_p, reading, verdict
from contamination.testsets.orderings import shard_bounds


class Explorer:
    """Five dropdowns and what they show; `widget` is what a notebook displays.

    Raises
    ------
    InputError
        No scored set.
    """

    def __init__(self, scored: Sequence[ScoredSet]) -> None:
        if not scored:
            raise InputError("there is no scored set to explore: score one first")
        self._scored = {(each.model, each.test_set.name): each for each in scored}
        self._views: dict[tuple[str, str], View] = {}
        self._viewer = Viewer()
        labels = ("Model", "Test set", "Test", "Shards", "Tokens b")
        self._controls = [Dropdown(description=label) for label in labels]
        self.model, self.dataset, self.test, self.shards, self.b = self._controls
        self._parts = [HTML() for _ in range(5)]
        self.card, self.charts, self.tests, self.diagnostics, self.examples = self._parts
        row = Box(self._controls, layout=Layout(flex_flow="row wrap"))
        self.widget = VBox([row, *self._parts])
        self._settling = False
        for control in self._controls:
            control.observe(self._changed, names="value")
        self._changed()

    def _changed(self, change: Any = None) -> None:
        """Offer what the choices so far allow, keep them where it is among them, and show it."""
        if self._settling:
            return
        self._settling = True
        try:
            if change and change.owner is self.test:
                # What was set in advance for one test is not for another.
                self.shards.options = self.b.options = ()
            view = self._offer()
        finally:
            self._settling = False
        chosen = (self.test.value, self.shards.value, self.b.value)
        for outcome in view.outcomes:
            if (outcome.test, outcome.result.shards, outcome.b) == chosen:
                self._show(view, outcome)
                return
        self.card.value = _list(view.left_out)
        for part in self._parts[1:]:
            part.value = ""

    def _offer(self) -> View:
        _fill(self.model, {model: model for model, _ in self._scored})
        names = [name for model, name in self._scored if model == self.model.value]
        _fill(self.dataset, {name: name for name in names})
        key = (self.model.value, self.dataset.value)
        if key not in self._views:
            self._views[key] = self._viewer.view(self._scored[key])
        view = self._views[key]
        outcomes = list(view.outcomes)
        tests = {TESTS[o.test].label: o.test for o in outcomes}
        _fill(self.test, tests, DEFAULT_TESTS)
        outcomes = [o for o in outcomes if o.test == self.test.value]
        usual = [o for o in outcomes if view.is_usual(o)]
        counts = sorted({o.result.shards for o in outcomes})
        _fill(self.shards, {str(r): r for r in counts}, [o.result.shards for o in usual])
        outcomes = [o for o in outcomes if o.result.shards == self.shards.value]
        _fill(self.b, {o.b or "–": o.b for o in outcomes}, [o.b for o in usual])
        return view

    def _show(self, view: View, outcome: Outcome) -> None:
        result, scored = outcome.result, view.scored
        diagnosis = view.diagnoses[result.shards]
        bounds = shard_bounds(len(scored.test_set.examples), result.shards)
        usual = (
            "Shards and b were set in advance."
            if view.is_usual(outcome)
            else ("This is not what was set in advance: picked after looking, it proves nothing.")
        )
        self.card.value = (
            f"<p>{escape(scored.about)}</p>"
            f"<h2>{verdict(result.log10_p)}: p = {plain_p(result.log10_p)}</h2>"
            f"<p>{escape(reading(outcome, diagnosis))}</p><p>{usual} Corrected for trying every "
            f"exact choice on this set: p = {plain_p(view.joint_log10_p)}.</p>"
        )
        null = _image(plot_null(outcome), f"Null; published order: {outcome.canonical:.2f}")
        bars = _image(plot_by_shard(outcome), f"One bar for each of {result.shards} shards")
        self.charts.value = f'<div style="display: flex; flex-wrap: wrap">{null}{bars}</div>'
        self.tests.value = "<h3>Every test on this set</h3>" + _table(
            ("Test", "Shards", "b", "p"),
            (
                (TESTS[o.test].label, o.result.shards, o.b or "–", plain_p(o.result.log10_p))
                for o in view.outcomes
            ),
        )
        self.diagnostics.value = (
            f"<h3>Does the order carry information by itself? {diagnosis.verdict}</h3>"
            + _list(diagnosis.reasons)
        )
        texts = scored.test_set.examples
        self.examples.value = "<h3>The examples in order</h3>" + "".join(
            f"<details><summary>Shard {shard + 1}, examples {start + 1}–{stop}: "
            f"{outcome.by_shard[shard]:.2f} {'' if outcome.unit == 'z' else 'nats'}</summary>"
            + "".join(f"<pre>{i + 1}. {escape(texts[i])}</pre>" for i in range(start, stop))
            + "</details>"
            for shard, (start, stop) in enumerate(bounds)
        )


def _fill(control: Dropdown, options: dict[str, Any], usual: Iterable[Hashable] = ()) -> None:
    """Offer options, and choose what was chosen; else the first usual one among them; else one."""
    values = list(options.values())
    kept = [value for value in (control.value, *usual) if value in values]
    control.options = list(options.items())
    control.value = (kept or values or [None])[0]
    control.disabled = len(options) < 2


def _image(figure: Figure, alt: str) -> str:
    with io.BytesIO() as file:
        figure.savefig(file, format="svg")
        data = base64.b64encode(file.getvalue()).decode()
    plt.close(figure)
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f'<table cellpadding="4"><tr>{head}</tr>{lines}</table>'


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
