"""A hub on this machine: repositories of data sets in commits, and files behind plain URLs."""

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """A data set: its commits, what its branches point to, and who may read it."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False

    def push(self, files: dict[str, bytes], ref: str = "main") -> str:
        """Make a commit; return its hash."""
        digest = hashlib.sha1(repr(sorted(files.items())).encode())
        self.commits[digest.hexdigest()] = files
        self.refs[ref] = digest.hexdigest()
        return digest.hexdigest()


class HubServer(ThreadingHTTPServer):
    """Answers as the hub does to the requests that a download makes.

    Attributes
    ----------
    repositories : by id. files : by path, for plain URLs. seen : method and path of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}
        self.files: dict[str, bytes] = {}
        self.seen: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def downloaded(self) -> set[str]:
        """Names of the files that were asked for with GET."""
        return {p.rpartition("/")[2] for p in self.seen if p.startswith("GET") and "/resolve/" in p}


class _Handler(BaseHTTPRequestHandler):
    server: HubServer

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.seen.append(f"{self.command} {path}")
        if path in self.server.files:
            self._send(200, self.server.files[path])
            return
        parts = path.strip("/").split("/")
        api = parts[0] == "api"
        if "datasets" not in parts[:2] or len(parts) < 5:
            self._send(404, b"{}")
            return
        name = "/".join(parts[2:4] if api else parts[1:3])
        verb, revision, *rest = (*parts[4:], "") if api else (*parts[3:], "")
        repository = self.server.repositories.get(name)
        if repository is None:
            self._send(401, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        revision = "/".join([revision, *rest]).strip("/") if verb == "revision" else revision
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        files = repository.commits[commit]
        if verb == "revision":
            told = {"id": name, "sha": commit, "siblings": [{"rfilename": f} for f in files]}
            self._send(200, json.dumps(told).encode())
        elif verb == "tree":
            listed = [
                {"type": "file", "path": path, "size": len(data), "oid": _oid(data)}
                for path, data in files.items()
            ]
            self._send(200, json.dumps(listed).encode())
        elif repository.gated:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
        else:
            data = files["/".join(rest).strip("/")]
            self._send(200, data, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": commit})

    do_HEAD = do_GET

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


def put_in_cache(repository: Path, files: dict[str, bytes], commit: str, *refs: str) -> None:
    """Store files as a commit that the refs point to, as the hub's client lays out its cache."""
    for name, data in files.items():
        blob = repository / "blobs" / hashlib.sha256(data).hexdigest()
        link = repository / "snapshots" / commit / name
        for path in (blob, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        link.symlink_to(blob)
    for ref in refs:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / ref).write_text(commit)


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
