"""`scripts/plain.py`: which constructs it finds, what is an exception, and which places fail."""

from pathlib import Path

import plain
import pytest

FOUND = {
    "a, b = f(x), g(y)": plain.TUPLE,
    "a, b = x == 1, y": plain.TUPLE,
    "a, b = [x for x in y], z": plain.TUPLE,
    "def f():\n    d = {'a': 1}\n    g(**d)": plain.LOCAL_DICT,
    "def f():\n    d = dict(a=1)\n    g(**d)": plain.LOCAL_DICT,
    "def f():\n    d = e | {'a': 1}\n    g(**d)": plain.LOCAL_DICT,
    "f(**{'a': 1})": plain.LITERAL_DICT,
    "f(*(a, b), c)": plain.STAR,
    "f(*[a, b])": plain.STAR,
    "x = 'text' * wanted": plain.TEXT_TIMES,
    "x = (y > 1) * f'{y}'": plain.TEXT_TIMES,
    "x = 'text' * bool(y)": plain.TEXT_TIMES,
    "x = a if b else c if d else e": plain.NESTED_IF,
    "x = [a for b in c for a in b]": plain.SEVERAL_FOR,
    "x = [[a for a in b] for b in c]": plain.NESTED,
    "x = y[start : (start := stop)]": plain.SLICE,
    "f(x := y)": plain.ARGUMENT,
    "f(a=(x := y))": plain.ARGUMENT,
    "def f():\n    return print(1)": plain.PRINT,
    "f = lambda: 1": plain.LAMBDA,
    "f: object = lambda: 1": plain.LAMBDA,
    "assert (f(x), y) == (1, 2)": plain.COMPARED,
}
PLAIN = [
    "a, b = b, a",
    "a, b = 0, 1.5",
    "a, b = f(x)",
    "x = '-' * 20",
    "x = ' ' * (width - 1)",
    "x = ' ' * len(y)",
    "x = a if b else c",
    "x = [a for a in b if a]",
    "f(*values, **options)",
    "if x := y:\n    pass",
    "sorted(x, key=lambda y: y[0])",
    "assert f(x) == (1, 2)",
]


@pytest.mark.parametrize(("code", "kind"), FOUND.items())
def test_a_construct_is_found_once(code: str, kind: str) -> None:
    found = plain.check_text(code)
    assert [construct.kind for construct in found] == [kind]


@pytest.mark.parametrize("code", PLAIN)
def test_plain_code_is_no_construct(code: str) -> None:
    assert plain.check_text(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "f = lambda: 1  # plain: a signature that the caller fixes",
        "f(\n    *(a, b),\n)  # plain: as the caller wants it",
    ],
)
def test_a_reason_on_the_first_or_last_line_makes_an_exception(code: str) -> None:
    assert plain.check_text(code) == []


@pytest.mark.parametrize("code", ["f = lambda: 1  # plain:", "f = lambda: '# plain: no comment'"])
def test_an_exception_needs_a_comment_with_a_reason(code: str) -> None:
    assert len(plain.check_text(code)) == 1


def repository(root: Path, *, clean: str) -> Path:
    """Make a repository with one offender, in scripts, and one place that is listed as clean."""
    for name in plain.FOLDERS:
        (root / name).mkdir()
    (root / "scripts" / "offender.py").write_text("f = lambda: 1\n", encoding="utf-8")
    (root / "src" / "watched.py").write_text("x = [a for b in c for a in b]\n", encoding="utf-8")
    (root / "pyproject.toml").write_text(f'[tool.plain]\nclean = ["{clean}"]\n', encoding="utf-8")
    return root


@pytest.mark.parametrize(("clean", "status"), [("src", 0), ("scripts", 1), ("gone", 2)])
def test_places_listed_as_clean_have_to_stay_clean(tmp_path: Path, clean: str, status: int) -> None:
    assert plain.main([], root=repository(tmp_path, clean=clean)) == status


def test_an_offender_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain.main([str(repository(tmp_path, clean="src") / "scripts")])
    assert "offender.py:1: lambda with a name" in capsys.readouterr().out


def test_a_file_that_is_not_python_is_no_clean_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n", encoding="utf-8")
    assert plain.main([str(path)]) == 2
