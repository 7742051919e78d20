"""A hub on this machine: repositories of models and data sets in commits, and plain URLs."""

import hashlib
import json
import threading
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

# What the hub keeps apart, and answers with an address of: everything large.
LARGE = (".safetensors", ".bin", ".parquet", ".model", ".zip", ".gz")
KINDS = {"models": "", "datasets": "datasets/"}  # in addresses of the API, and of files


@dataclass
class Repository:
    """A model or a data set.

    Attributes
    ----------
    commits : the files of each. refs : what branches and tags point to.
    gated : only who has the token of the hub may read it.
    """

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False

    def push(self, files: dict[str, bytes], ref: str = "main") -> str:
        """Make a commit; return its hash."""
        digest = hashlib.sha1(repr(sorted((f, _oid(d)) for f, d in files.items())).encode())
        self.commits[digest.hexdigest()] = files
        self.refs[ref] = digest.hexdigest()
        return digest.hexdigest()


class LocalServer(ThreadingHTTPServer):
    """A server of tests, which answers from a thread."""

    daemon_threads = True
    request_queue_size = 64  # else connections made at the same time wait a second for each other

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that give up are part of the tests."""


class LocalHandler(BaseHTTPRequestHandler):
    """Answers quietly."""

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, *, cut: bool = False
    ) -> None:
        """Send an answer; with `cut` the connection breaks in the middle of its body."""
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.wfile.flush()
        self.close_connection = self.close_connection or cut


class HubServer(LocalServer):
    """Answers as the hub does to the requests that a download makes.

    Attributes
    ----------
    repositories, models : data sets, and models, by id. files : by path, for plain URLs.
    seen : method and path of each request. token : of who may read what is gated.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.repositories: dict[str, Repository] = {}
        self.models: dict[str, Repository] = {}
        self.files: dict[str, bytes] = {}
        self.linked: dict[str, str] = {}  # path of what is kept apart -> of the file that it is
        self.seen: list[str] = []
        self.token: str | None = None

    def downloaded(self) -> set[str]:
        """Names of the files of repositories that were asked for with GET."""
        asked = (line.removeprefix("GET ") for line in self.seen if line.startswith("GET "))
        paths = (self.linked.get(path, path) for path in asked)
        return {path.rpartition("/")[2] for path in paths if "/resolve/" in path}


class _Handler(LocalHandler):
    server: HubServer

    def do_GET(self) -> None:
        quoted = urlsplit(self.path).path
        path = unquote(quoted)
        self.server.seen.append(f"{self.command} {path}")
        if path in self.server.files:
            self.send(200, self.server.files[path])
            return
        parts = [unquote(part) for part in quoted.strip("/").split("/")]
        api = parts[0] == "api"
        if api:
            parts = parts[1:]
        kind = parts.pop(0) if parts[0] in KINDS else "models"
        if len(parts) < 2:
            self.send(404, b"{}")
            return
        name = "/".join(parts[:2])
        verb, revision, *rest = parts[2:] + [""] * (4 - len(parts))
        repositories = self.server.repositories if kind == "datasets" else self.server.models
        repository = repositories.get(name)
        if repository is None:
            self.send(401, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif api:
            self._describe(name, repository, verb or "revision", revision or "main", rest)
        elif verb == "resolve":
            self._resolve(repository, revision, "/".join(rest))
        else:
            self.send(404, b"{}")

    do_HEAD = do_GET

    def _describe(
        self, name: str, repository: Repository, verb: str, revision: str, rest: list[str]
    ) -> None:
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self.send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        files = repository.commits[commit]
        if verb == "revision":
            gated = "manual" if repository.gated else False
            siblings = [{"rfilename": file} for file in files]
            about = {"id": name, "sha": commit, "gated": gated, "tags": [], "siblings": siblings}
            self.send(200, json.dumps(about).encode())
            return
        folder = "".join(f"{part}/" for part in rest)
        listed: list[dict[str, Any]] = []
        for path, data in files.items():
            told = {"type": "file", "path": path, "size": len(data), "oid": _oid(data)}
            if path.endswith(LARGE):
                told["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 135}
            listed += [told] * path.startswith(folder)
        if verb != "tree" or (folder and not listed):
            self.send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        else:
            self.send(200, json.dumps(listed).encode())

    def _resolve(self, repository: Repository, revision: str, file: str) -> None:
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self.send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repository.gated and given != self.server.token:
            self.send(403 if given else 401, b"{}", {"X-Error-Code": "GatedRepo"})
            return
        data = repository.commits[commit].get(file)
        if data is None:
            missing = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
            self.send(404, b"{}", missing)
            return
        headers = {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": commit}
        if not file.endswith(LARGE):
            self.send(200, data, headers)
            return
        linked = f"/lfs/{_sha256(data)}"
        self.server.files[linked] = data
        self.server.linked[linked] = self.path
        headers |= {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{_sha256(data)}"'}
        # Elsewhere, where no header says what the hub knows.
        elsewhere = f"http://localhost:{self.server.server_port}{linked}"
        self.send(302, b"", headers | {"Location": elsewhere})


@cache
def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@cache
def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
