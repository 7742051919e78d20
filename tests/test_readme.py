"""What the README and the gallery quote of the reference run, and the files that they show."""

import sys

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from fakes.data_fixtures import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import readme


@pytest.mark.parametrize("path", readme.PAGES, ids=lambda p: p.name)
def test_numbers_and_tables_are_those_of_the_reference(path) -> None:
    page = path.read_text(encoding="utf-8")
    assert readme.NUMBER.search(page)
    assert readme.renewed(page) == page, "run python scripts/readme.py"
    with pytest.raises(KeyError):
        readme.renewed("<!-- results.gone -->8<!-- -->")


@pytest.mark.parametrize("path", [*readme.PAGES, ROOT / "data" / "README.md"], ids=str)
def test_what_a_page_shows_and_links_is_there(path) -> None:
    html = BeautifulSoup(
        MarkdownIt().enable("table").render(path.read_text(encoding="utf-8")), "html.parser"
    )
    addresses = [tag.get("src") or tag["href"] for tag in html.find_all(["img", "a"])]
    ours = [address.partition("#")[0] for address in addresses if "://" not in address]
    assert [address for address in ours if not (path.parent / address).exists()] == []
