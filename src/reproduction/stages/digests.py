"""Digests of modules and versions of packages, kept from one call of make to the next.

They take two seconds to compute: a syntax tree takes milliseconds, and the names by
which packages are imported lie in hundreds of files. The digest of a module is kept
under the SHA-256 of its bytes, so that one file serves all profiles. Versions are kept
while the same distributions are installed.
"""

import ast
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import read_json, read_yaml, sha256_of, write_json

Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Digests:
    """Digests of modules and versions of packages, from a file or computed.

    Parameters
    ----------
    file
        File of the digests; None keeps them in memory alone.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.installed = installed_distributions()
        self.modules: dict[str, str] = {}  # and of YAML, those asked for, by the SHA-256 of bytes
        self.versions: dict[str, str] = {}
        self._of_path: dict[Path, str] = {}
        self._kept: dict[str, Any] = {}
        if file is not None and file.is_file():
            with suppress(InputError):  # a damaged file keeps nothing
                self._kept = read_json(file)
        if self._kept.get("installed") == self.installed:
            self.versions = dict(self._kept["versions"])

    def of_module(self, path: Path) -> str:
        """Return the digest of a module without comments and docstrings."""
        if path not in self._of_path:
            source = path.read_bytes()
            key = sha256_of(source, platform.python_version())
            kept = self._kept.get("modules", {}).get(key)
            self.modules[key] = kept or sha256_of(_tree(source))[:16]
            self._of_path[path] = self.modules[key]
        return self._of_path[path]

    def of_yaml(self, path: Path) -> str:
        """Return the digest of what a file of YAML holds, without comments."""
        if path not in self._of_path:
            key = sha256_of(path)
            kept = self._kept.get("modules", {}).get(key)
            self.modules[key] = kept or sha256_of(json.dumps(read_yaml(path), default=str))
            self._of_path[path] = self.modules[key]
        return self._of_path[path]

    def of_package(self, name: str) -> str:
        """Return the version of a distribution, or of one imported by that name; else ""."""
        if name not in self.versions:
            self.versions[name] = self._version(name)
        return self.versions[name]

    def _version(self, name: str) -> str:
        for distribution in (*self._distributions.get(name, ()), name):
            with suppress(PackageNotFoundError):
                return version(distribution)
        return ""

    @cached_property
    def _distributions(self) -> Mapping[str, Sequence[str]]:
        """The distributions by the names that they are imported by."""
        return packages_distributions()

    def save(self) -> None:
        """Write the digests that were computed to the file, unless it holds the same."""
        kept = {
            "installed": self.installed,
            "versions": self.versions,
            "modules": self._kept.get("modules", {}) | self.modules,
        }
        if self.file is not None and kept != self._kept:
            write_json(self.file, kept)


def installed_distributions() -> str:
    """Return a digest of the names and versions of all distributions on the path."""
    return sha256_of("\n".join(sorted(_metadata_names())))


def _metadata_names() -> Iterator[str]:
    """Yield the names of the folders of metadata, which end in the version."""
    for folder in map(Path, sys.path):
        if folder.is_dir():
            for metadata in folder.glob("*.*-info"):
                yield metadata.name


def _tree(source: bytes) -> str:
    """Return the syntax tree of a module, as text, without its docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
