"""`seal --stamp` and `verify --date`: a date that an authority gives, made on the spot."""

import datetime
import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from cli.test_seal import ITEMS, PUBLISHED, SEAL, SEALED
from contamination.seal import beacon
from contamination.seal import stamp as stamp_module
from contamination.seal.stamp import stamped_at
from fakes.hub_server import LocalHandler, LocalServer
from seal.test_beacon import ROUND, SIGNATURE

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is the authority")
CONFIG = """
[ tsa ]
default_tsa = stamp
[ req ]
distinguished_name = dn
[ dn ]
[ stamp ]
serial = serial
default_policy = 1.2.3
digests = sha256
signer_digest = sha256
"""
TOKEN = Path("sealed/commitment.tsr")
COMMITMENT = Path("sealed/commitment.json")
DATE = ("verify", PUBLISHED, *SEALED, "--date", TOKEN, "--ca")
NEW = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config cnf"


class Authority(LocalHandler):
    """Stamps by `openssl ts` in a folder, or answers something else `instead`.

    With a `pause` (seconds) it sends a byte at a time, and would take minutes.
    """

    folder: Path
    status = 200
    instead = b""
    pause = 0.0

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/timestamp-query"
        (self.folder / "tsq").write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        self.openssl("ts -reply -config cnf -queryfile tsq -signer tsa -inkey key -out tsr")
        self.send(self.status, self.instead or (self.folder / "tsr").read_bytes())

    def send(self, status: int, body: bytes, *_: object, **__: object) -> None:
        if not self.pause:
            super().send(status, body)
            return
        with suppress(OSError):  # the client has gone
            self.send_response(status)
            self.end_headers()
            for _byte in range(500):
                self.wfile.write(b"0")
                Event().wait(self.pause)

    @classmethod
    def openssl(cls, command: str) -> None:
        subprocess.run(["openssl", *command.split()], cwd=cls.folder, check=True)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    Authority.folder = tmp_path_factory.mktemp("authority")
    (Authority.folder / "cnf").write_text(CONFIG)
    (Authority.folder / "serial").write_text("01\n")
    for name in ("ca", "other"):
        ca = f"-addext basicConstraints=critical,CA:TRUE -subj /CN={name}"
        Authority.openssl(f"{NEW} {ca} -keyout {name} -out {name}.pem")
    use = "-addext extendedKeyUsage=critical,timeStamping -subj /CN=tsa"
    Authority.openssl(f"{NEW} {use} -CA ca.pem -CAkey ca -keyout key -out tsa")
    with LocalServer(Authority) as server:
        yield server.url
        server.shutdown()


@pytest.fixture
def ca(monkeypatch, url) -> Path:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    Path("quiz.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ITEMS))
    return Authority.folder / "ca.pem"


def test_a_request_is_stamped_later_and_dates_the_commitment(call, refused, url, ca, monkeypatch):
    past, stamp = beacon.GENESIS, ("seal", "sealed", "--stamp", "--tsa", url)
    monkeypatch.setattr(beacon, "GENESIS", past + 10**10)
    status, out, _ = call(*SEAL, "--commit", "--round", ROUND, "--stamp")
    assert status == 0
    assert "have sealed/commitment.tsq stamped" in out
    assert not TOKEN.exists()
    start = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    assert f"stamped: publish {TOKEN}" in call(*stamp)[1]
    assert refused(*stamp).startswith(f"{TOKEN}: there is a time stamp already")
    assert call("seal", "sealed", "--signature", SIGNATURE)[0] == 0
    found = stamped_at(TOKEN, COMMITMENT.read_bytes(), ca)
    assert start <= found <= datetime.datetime.now(datetime.UTC)
    moment = f"{found:%Y-%m-%d %H:%M:%S} UTC"
    status, out, _ = call(*DATE, ca)
    assert status == 0
    assert f"existed at {moment}, as {ca} vouches; that is before the round" in out
    monkeypatch.setattr(beacon, "GENESIS", past)
    status, out, err = call(*DATE, ca)
    assert status == 2
    assert "verified: " in out
    assert err.startswith(f"error: {TOKEN}: stamped at {moment}, which is not before round {ROUND}")


def test_a_token_that_does_not_date_this_commitment_is_refused(call, refused, url, ca):
    for out in ("again", "sealed"):
        assert call(*SEAL, "--out", out, "--stamp", "--tsa", url)[0] == 0
    date = stamped_at(TOKEN, COMMITMENT.read_bytes(), ca)
    token = TOKEN.read_bytes()
    earlier = token.replace(f"{date:%Y%m%d}".encode(), b"20200131")
    for given, root, named in (
        (token, ca.with_name("other.pem"), "Error while verifying certificates"),
        (earlier, ca, "Error while verifying certificates"),
        (token[:-1] + bytes([token[-1] ^ 1]), ca, "Error while verifying certificates"),
        (Path("again/commitment.tsr").read_bytes(), ca, "Mismatch between messages"),
        (b"no token", ca, "ASN.1 parse error"),
    ):
        TOKEN.write_bytes(given)
        line = refused(*DATE, root)
        assert line.startswith(f"{TOKEN}: no time stamp of this commitment by {root} ({named})")
    assert refused(*DATE, TOKEN).startswith(f"{TOKEN}: no certificate in PEM")
    assert earlier != token


def test_what_gives_no_stamp_is_refused(call, refused, url, ca, monkeypatch):
    assert call(*SEAL, "--out", "again", "--stamp", "--tsa", url)[0] == call(*SEAL)[0] == 0
    stamp = ("seal", "sealed", "--stamp", "--tsa")
    for status, answer, named in (
        (500, b"out of order", "it answers with the status 500"),
        (200, b"no stamp", "ASN.1 parse error"),
        (200, bytes.fromhex("30053003020102"), "it refuses, or stamps something else"),
        (200, Path("again/commitment.tsr").read_bytes(), "it refuses, or stamps something else"),
        (200, b"0" * (stamp_module.MOST_BYTES + 1), "its answer is larger than 1,048,576 bytes"),
    ):
        monkeypatch.setattr(Authority, "status", status)
        monkeypatch.setattr(Authority, "instead", answer)
        told = f"{url}: no time stamp ({named}); send sealed/commitment.tsq later"
        assert refused(*stamp, url) == told
    for nowhere in ("http://[::1", "http://127.0.0.1:1"):
        assert refused(*stamp, nowhere).startswith(f"{nowhere}: no time stamp (")
    assert not TOKEN.exists()
    COMMITMENT.write_text("{}")
    assert refused(*stamp, url).startswith(f"{COMMITMENT}: not what sealed/private/key.json draws")


def test_an_authority_that_never_ends_its_answer_is_left(call, refused, url, ca, monkeypatch):
    assert call(*SEAL)[0] == 0
    monkeypatch.setattr(stamp_module, "SECONDS", 0.5)
    monkeypatch.setattr(Authority, "pause", 0.05)
    line = refused("seal", "sealed", "--stamp", "--tsa", url)
    assert "(no whole answer in 0.5 s)" in line


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_password_is_not_shown(call, refused, ca, scheme):
    assert call(*SEAL)[0] == 0
    address = f"{scheme}author:hush@127.0.0.1:1/tsa"
    line = refused("seal", "sealed", "--stamp", "--tsa", address)
    assert "hush" not in line
    assert f"{scheme}127.0.0.1:1/tsa" in line
