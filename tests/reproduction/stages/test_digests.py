"""Digests of modules and versions of packages, kept from one call of make to the next."""

from functools import cache
from importlib.metadata import packages_distributions, version

import pytest

from contamination.files import read_json, write_json
from reproduction.stages import digests
from reproduction.stages.digests import Digests

MODULE = "def double(x):\n    return 2 * x\n"
search_once = cache(packages_distributions)


@pytest.fixture(autouse=True)
def _search_once(monkeypatch) -> None:
    """Search the installed packages once for all tests: it takes most of a second."""
    monkeypatch.setattr(digests, "packages_distributions", search_once)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param(f"# a comment\n{MODULE}", True, id="comment"),
        pytest.param(f'"""What it is."""\n{MODULE}', True, id="docstring"),
        pytest.param(MODULE.replace("2", "3"), False, id="code"),
    ],
)
def test_the_code_of_a_module_alone_counts_also_when_it_was_kept(tmp_path, changed, same) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    first = Digests(tmp_path / "digests.json")
    before = first.of_module(path)
    first.save()
    path.write_text(changed)
    assert (Digests(tmp_path / "digests.json").of_module(path) == before) is same


def test_what_was_kept_is_not_computed_again(tmp_path, monkeypatch) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    first = Digests(tmp_path / "digests.json")
    expected = (first.of_module(path), first.of_package("yaml"))
    first.save()
    monkeypatch.setattr(digests, "_tree", lambda source: pytest.fail("parsed again"))
    monkeypatch.setattr(digests, "packages_distributions", lambda: pytest.fail("searched again"))
    second = Digests(tmp_path / "digests.json")
    kept = (second.of_module(path), second.of_package("yaml"))
    assert kept == expected
    assert expected[1] == version("pyyaml")


def test_a_profile_keeps_what_another_one_has_computed(tmp_path, monkeypatch) -> None:
    names = ("one.py", "two.py")
    for name in names:
        (tmp_path / name).write_text(MODULE + name.partition(".")[0])
        found = Digests(tmp_path / "digests.json")
        found.of_module(tmp_path / name)
        found.save()
    monkeypatch.setattr(digests, "_tree", lambda source: pytest.fail("parsed again"))
    for name in names:
        Digests(tmp_path / "digests.json").of_module(tmp_path / name)


def test_versions_are_looked_up_again_where_other_distributions_are_installed(tmp_path) -> None:
    file = tmp_path / "digests.json"
    first = Digests(file)
    expected = first.of_package("yaml")
    first.save()
    kept = read_json(file)
    write_json(file, kept | {"versions": {"yaml": "0.1"}, "installed": "others"})
    assert Digests(file).of_package("yaml") == expected


def test_a_damaged_file_keeps_nothing_and_is_replaced(tmp_path) -> None:
    file = tmp_path / "digests.json"
    file.write_text("{")
    found = Digests(file)
    assert found.of_package("yaml") == version("pyyaml")
    found.save()
    assert read_json(file)["versions"] == {"yaml": version("pyyaml")}
