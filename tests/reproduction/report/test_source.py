"""Planted faults: each is one line that names the file, the line and the fix."""

import re

import pytest

from contamination.errors import InputError
from reproduction.report.render import render_report

FIGURE = '![Caption](figures/small.svg){#fig-a fig-alt="What it shows."}'
TABLE = "::: {#tbl-a}\n\n{{< include tables/small.md >}}\n\nCaption.\n:::"

NO_ALT = r":5: figure figures/small\.svg has no alt text"
FAULTS = {
    "missing include": (
        "{{< include tables/none.md >}}",
        r":5: include tables/none\.md not found: .*results/tables/none\.md",
    ),
    "include outside": ("{{< include ../secret.md >}}", r":5: include \.\./secret\.md not found"),
    "include of itself": ("{{< include report.qmd >}}", " includes itself"),
    "include in a line": ("A {{< include tables/small.md >}}", ":5: .*must stand alone"),
    "missing variable": (
        "One\n\n{{< var run.none >}}",
        r":7: variable run\.none is not in .*results/variables\.yml",
    ),
    "group of variables": ("{{< var run >}}", ":5: variable run is not in"),
    "unknown shortcode": ("{{< video x.mp4 >}}", ":5: unknown shortcode"),
    "open shortcode": ("{{< var run.seed", ":5: shortcode without its end"),
    "shortcode in code": ("`{{< var run.seed >}}`", ":5: .*stands in code"),
    "shortcode in math": ("$m = {{< var run.seed >}}$", ":5: .*in a formula"),
    "missing reference": ("See @fig-none.", ":5: cross-reference @fig-none"),
    "odd line ends": ("A\x0bb\u2028c\n\n@fig-none", ":7: cross-reference @fig-none"),
    "unknown kind": ("See @thm-a.", ":5: cross-reference @thm-a: only figures"),
    "missing citation": ("As [@nobody1999].", ":5: citation @nobody1999 is not in"),
    "missing figure": (
        '![Caption](figures/none.svg){#fig-a fig-alt="x y"}',
        r":5: figure figures/none\.svg not found: .*results/figures/none\.svg",
    ),
    "missing alt text": ("![Caption](figures/small.svg){#fig-a}", NO_ALT),
    "empty alt text": ('![Caption](figures/small.svg){#fig-a fig-alt=" "}', NO_ALT),
    "shortcode in alt text": (
        '![Caption](figures/small.svg){#fig-a fig-alt="p {{< var run.seed >}}"}',
        ":5: shortcode in an alt text",
    ),
    "missing label": (
        '![Caption](figures/small.svg){fig-alt="x y"}',
        r":5: figure figures/small\.svg has no label",
    ),
    "broken link": ("See [there](#nowhere).", ":5: link to #nowhere"),
    "label used twice": (
        f"{FIGURE}\n\n{FIGURE}",
        r":7: identifier fig-a is taken by .*report\.qmd:5",
    ),
    "table without caption": (
        "::: {#tbl-a}\n\n{{< include tables/small.md >}}\n\n:::",
        ": pandoc: table tbl-a has no caption",
    ),
    "table without table": ("::: {#tbl-a}\n\nWords.\n:::", "table tbl-a contains no table"),
    "unnumbered section": ("# A {#sec-a .unnumbered}\n\nSee @sec-a.", "sec-a is unnumbered"),
    "mixed brackets": (
        f"{FIGURE}\n\n[@fig-a; @oren2024]",
        "citations and cross-references in one pair of brackets",
    ),
    "callout": ("::: {.callout-note}\nx\n:::", "a callout has no look in Quarto without its theme"),
    "unknown to typst": ("```{=typst}\n#nonsense()\n```", ": typst: .*nonsense"),
}


@pytest.mark.parametrize(("body", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_one_line_and_writes_nothing(project, body: str, message: str) -> None:
    paper, results = project(body)
    with pytest.raises(
        InputError, match=f"^{re.escape(str(paper))}/report.qmd.*{message}"
    ) as caught:
        render_report(paper, results, quarto="")
    assert "\n" not in str(caught.value)
    assert not (results / "report").exists()


def test_a_fault_of_the_page_is_named_by_its_line_there(project) -> None:
    with pytest.raises(InputError, match=r"^report\.html:\d+: heading <h4> follows level 2"):
        render_report(*project("# A\n\n### B"), quarto="")


def test_fault_in_an_included_file_names_that_file(project) -> None:
    paper, results = project(TABLE)
    (results / "tables" / "small.md").write_text("| a |\n|---|\n| @nobody |\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"results/tables/small\.md:3: citation @nobody"):
        render_report(paper, results, quarto="")


@pytest.mark.parametrize("value", ["17", "''", "null", "[1, 2]", "|\n    two\n    lines"])
def test_variables_are_one_line_of_text(project, value: str) -> None:
    paper, results = project("{{< var run.seed >}}")
    (results / "variables.yml").write_text(f"run:\n  seed: {value}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"variable run\.seed must be one line of text"):
        render_report(paper, results, quarto="")


def test_files_that_are_not_text(project) -> None:
    paper, results = project(TABLE)
    (results / "tables" / "small.md").write_bytes(b"| a |\xff\n")
    with pytest.raises(InputError, match=r"small\.md is not UTF-8"):
        render_report(paper, results, quarto="")
    (results / "variables.yml").write_text("run: [", encoding="utf-8")
    with pytest.raises(InputError, match=r"variables\.yml is not YAML"):
        render_report(paper, results, quarto="")


def test_code_comments_and_addresses_hold_no_references(project) -> None:
    body = (
        "`@fig-x`\n\n```\n@nobody\n```\n\n<!-- @sec-none -->\n\nme@example.org \\@x $L@y$ @oren2024"
    )
    paper, results = project(body)
    page = render_report(paper, results, quarto="")[0]
    assert "@fig-x" in page.read_text(encoding="utf-8")
