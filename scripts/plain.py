#!/usr/bin/env python3
"""Count constructs that save a line and cost a reader, by kind, and say where they stand.

    python scripts/plain.py [-v] [PATH ...]     # default: src tests benchmarks scripts

Without paths, the places listed under `[tool.plain] clean` in pyproject.toml have to stay clean:
what is found there is printed, and the exit status is 1. The rest is only counted. With paths, all
that is found in them is an error. Kinds to watch are counted and are never an error: they are
idiomatic where they are short.

A construct whose first or last line ends in `# plain: REASON` is an exception. The exit status is
2 if a path does not exist or is not Python.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "scripts")
EXCEPTION = re.compile(r"#\s*plain:\s*\S")

TUPLE = "tuple assignment that computes"
LOCAL_DICT = "call with **local_dict"
LITERAL_DICT = "call with **{literal}"
STAR = "star of a literal in a call"
TEXT_TIMES = "text times a condition"
NESTED_IF = "nested conditional expression"
SEVERAL_FOR = "comprehension with several for"
NESTED = "nested comprehension"
SLICE = "walrus in a slice"
ARGUMENT = "walrus in an argument"
PRINT = "return print(...)"
LAMBDA = "lambda with a name"
COMPARED = "comparison of tuples that compute"
WATCHED = (SEVERAL_FOR, NESTED, LOCAL_DICT)

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COMPUTING = (ast.Call, ast.IfExp, ast.BinOp, ast.BoolOp, ast.Compare, ast.Await, *COMPREHENSIONS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PRINTING = ("print", "say")


@dataclass(frozen=True)
class Construct:
    """A construct that costs a reader: its kind, and its first and last line."""

    kind: str
    line: int
    last_line: int


def is_text(node: ast.AST) -> bool:
    """Return whether an expression is a literal text."""
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_number(node: ast.AST) -> bool:
    """Return whether an expression is a number by its look, as in `"-" * 20` or `" " * (n - 1)`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("len", "int", "min", "max", "sum")
    return False


def holds(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Return whether something of these kinds lies strictly below a node."""
    return any(isinstance(below, kinds) for below in ast.walk(node) if below is not node)


def makes_dict(value: ast.AST | None) -> bool:
    """Return whether an expression is a dict display, a call of `dict`, or a union of such."""
    if isinstance(value, ast.Dict | ast.DictComp):
        return True
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "dict"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return makes_dict(value.left) or makes_dict(value.right)
    return False


def local_dicts(function: ast.AST) -> set[str]:
    """Return the names that a function binds to a dict."""
    names = set()
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign) and makes_dict(node.value):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and makes_dict(node.value):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                names.add(target.id)
    return names


def kinds_of(node: ast.AST, dicts: frozenset[str]) -> Iterator[str]:
    """Yield the kinds of constructs that a node is; `dicts` are names of local dicts."""
    if isinstance(node, ast.Assign):
        yield from _kinds_of_assignment(node)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if isinstance(node.value, ast.Lambda):
            yield LAMBDA
    elif isinstance(node, ast.Call):
        yield from _kinds_of_call(node, dicts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left_repeats = is_text(node.left) and not is_number(node.right)
        right_repeats = is_text(node.right) and not is_number(node.left)
        if left_repeats or right_repeats:
            yield TEXT_TIMES
    elif isinstance(node, ast.IfExp):
        if holds(node, (ast.IfExp,)):
            yield NESTED_IF
    elif isinstance(node, COMPREHENSIONS):
        if len(node.generators) > 1:
            yield SEVERAL_FOR
        elif holds(node, COMPREHENSIONS):
            yield NESTED
    elif isinstance(node, ast.Slice):
        if holds(node, (ast.NamedExpr,)):
            yield SLICE
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Name) and called.id in PRINTING:
            yield PRINT
    elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Tuple):
        elements = node.left.elts
        if len(elements) > 1 and any(isinstance(element, COMPUTING) for element in elements):
            yield COMPARED


def _kinds_of_assignment(node: ast.Assign) -> Iterator[str]:
    if isinstance(node.value, ast.Lambda):
        yield LAMBDA
    if not isinstance(node.targets[0], ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return
    if any(isinstance(element, COMPUTING) for element in node.value.elts):
        yield TUPLE


def _kinds_of_call(node: ast.Call, dicts: frozenset[str]) -> Iterator[str]:
    for keyword in node.keywords:
        unpacked = keyword.value if keyword.arg is None else None
        if isinstance(unpacked, ast.Name) and unpacked.id in dicts:
            yield LOCAL_DICT
        if isinstance(unpacked, ast.Dict):
            yield LITERAL_DICT
        if isinstance(keyword.value, ast.NamedExpr):
            yield ARGUMENT
    for argument in node.args:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Tuple | ast.List):
            yield STAR
        if isinstance(argument, ast.NamedExpr):
            yield ARGUMENT


def constructs(tree: ast.AST, dicts: frozenset[str] = frozenset()) -> Iterator[Construct]:
    """Yield every construct of a module, from the top to the bottom of its tree."""
    if isinstance(tree, FUNCTIONS):
        dicts = dicts | local_dicts(tree)
    for kind in kinds_of(tree, dicts):
        line = getattr(tree, "lineno", 0)
        yield Construct(kind=kind, line=line, last_line=getattr(tree, "end_lineno", line))
    for child in ast.iter_child_nodes(tree):
        yield from constructs(child, dicts)


def excepted_lines(text: str) -> set[int]:
    """Return the lines with a comment `# plain: REASON`; in a string it is no comment."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and EXCEPTION.match(token.string):
            lines.add(token.start[0])
    return lines


def check_text(text: str) -> list[Construct]:
    """Return the constructs of a module's text that no comment excepts."""
    tree = ast.parse(text)
    excepted = excepted_lines(text)
    found = []
    for construct in constructs(tree):
        if construct.line not in excepted and construct.last_line not in excepted:
            found.append(construct)
    return found


def python_files(path: Path) -> list[Path]:
    """Return the modules below a folder, or the one that a path names."""
    if path.is_file():
        return [path]
    return sorted(path.rglob("*.py"))


def clean_places(root: Path) -> list[Path]:
    """Return the folders and files that pyproject.toml lists as clean."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return [root / name for name in settings["tool"]["plain"]["clean"]]


def is_below(path: Path, places: list[Path]) -> bool:
    """Return whether a path is one of the places or lies in one of them."""
    resolved = path.resolve()
    return any(resolved.is_relative_to(place.resolve()) for place in places)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Print the counts by kind and the constructs where none may stand; return the exit status."""
    parser = argparse.ArgumentParser(description="Count constructs that cost a reader.")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every place")
    options = parser.parse_args(arguments)
    paths = options.paths or [root / name for name in FOLDERS]
    clean = options.paths or clean_places(root)
    for path in [*paths, *clean]:
        if not path.exists():
            print(f"{path}: no such file or folder", file=sys.stderr)
            return 2

    kinds: Counter[str] = Counter()
    places: Counter[Path] = Counter()
    errors = 0
    for path in paths:
        for file in python_files(path):
            text = file.read_text(encoding="utf-8")
            lines = text.splitlines()
            must_be_clean = is_below(file, clean)
            try:
                found = check_text(text)
            except SyntaxError as error:
                print(f"{file}:{error.lineno}: not Python: {error.msg}", file=sys.stderr)
                return 2
            for construct in found:
                kinds[construct.kind] += 1
                places[path] += 1
                is_error = must_be_clean and construct.kind not in WATCHED
                errors += is_error
                if is_error or options.verbose:
                    code = lines[construct.line - 1].strip()[:100]
                    print(f"{file}:{construct.line}: {construct.kind}: {code}")

    for kind, count in kinds.most_common():
        watched = " (to watch)" if kind in WATCHED else ""
        print(f"{count:6d}  {kind}{watched}")
    by_place = ", ".join(f"{path.name} {count}" for path, count in places.items())
    print(f"{kinds.total():6d}  in all ({by_place or 'none'})")
    if errors:
        print(f"{errors} where none may stand: write them out, or add `# plain: REASON` to a line")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
