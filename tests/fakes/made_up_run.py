"""A made-up run: every table, figure and variable that a document asks for."""

import re
from pathlib import Path
from zlib import crc32

import yaml
from bs4 import BeautifulSoup

PAPER = Path(__file__).parents[2] / "paper"

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="250" viewBox="0 0 400 250">'
    '<path d="M40 20 V210 H380" fill="none" stroke="#333" stroke-width="2"/>'
    '<path d="M50 60 L150 90 L250 150 L370 200" fill="none" stroke="#1f77b4" stroke-width="3"/>'
    "</svg>\n"
)

CANARIES = """| set | examples | copies | permutation | sharded t | exact | log10 exact | tokens |
|:----|---------:|-------:|------------:|----------:|------:|------------:|-------:|
| numpy ufuncs | 400 | 1 | 0.41 | 0.38 | 0.37 | −0.43 | 120 345 |
| scipy.stats distributions | 400 | 64 | 0.0099 | 1.2e−31 | 4.0e−38 | −37.40 | 98 004 |
"""

# All that the filter numbers, refers to or draws.
FEATURES = r"""
# First {#sec-first}

See @sec-second-a, @fig-b, @tbl-b, @eq-b, [-@fig-a] and [@fig-a; @fig-b]; also @oren2024.

# Aside {.unnumbered}

# Second {#sec-second}

## Part {#sec-second-a}

![One, beside @tbl-a](figures/small.svg){#fig-a fig-alt="A \"falling\" line." width=60%}

![](figures/small.svg){fig-alt="A picture without number."}

![Two](figures/small.svg){#fig-b fig-alt="Another line."}

::: {#tbl-a}

{{< include tables/small.md >}}

Table of *one*.
:::

::: {#tbl-b}

{{< include tables/small.md >}}

Table of two, see [@shi2024].
:::

$$ a = b $$ {#eq-a}

$$ c = \frac{d}{e} $$ {#eq-b}

$$ unnumbered $$

::: {#box-exact .box}
**Beware** of @eq-a: the *body*.
:::

## Last {#sec-last}

# References {.unnumbered}

::: {#refs}
:::
"""


def variables_used(*documents: Path) -> list[str]:
    text = "".join(document.read_text(encoding="utf-8") for document in documents)
    return sorted(set(re.findall(r"\{\{< var (\S+) >\}\}", text)))


def made_up_value(name: str) -> str:
    """The value of a variable, by which it is found in a page: a number as long as real ones."""
    return f"{10_000 + crc32(name.encode()) % 90_000:,}"


def read_page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def whole_page(path: Path, *documents: Path) -> BeautifulSoup:
    """Read a page; fail unless it has every variable, table and figure of its documents."""
    page = read_page(path)
    text = page.get_text()
    source = "".join(d.read_text(encoding="utf-8") for d in documents)
    assert [n for n in variables_used(*documents) if made_up_value(n) not in text] == []
    assert len(page.find_all("table")) >= source.count("{{< include tables/")
    assert len(page.find_all("img")) == source.count("](figures/")
    return page


def fill_results(results: Path, *documents: Path) -> Path:
    """Write to `results` what `documents` include, show and mention."""
    text = "".join(document.read_text(encoding="utf-8") for document in documents)
    wanted = ((r"\{\{< include (tables/\S+) >\}\}", CANARIES), (r"\]\((figures/\S+?)\)", SVG))
    for pattern, content in wanted:
        for name in re.findall(pattern, text):
            (results / name).parent.mkdir(parents=True, exist_ok=True)
            (results / name).write_text(content, encoding="utf-8")
    names = variables_used(*documents)
    assert len(set(map(made_up_value, names))) == len(names)
    tree: dict[str, dict[str, str]] = {}
    for name in names:
        group, _, leaf = name.partition(".")
        tree.setdefault(group, {})[leaf] = made_up_value(name)
    (results / "variables.yml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return results
