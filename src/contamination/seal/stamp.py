"""A date that is not the author's word: a time stamp of the commitment (RFC 3161).

What is stamped are the bytes of `commitment.json`, by their SHA-256, so nobody who
stamps them learns anything. `openssl ts` reads and writes the same files: a request
(`commitment.tsq`) and the answer of a time-stamping authority to it (`commitment.tsr`).
"""

import datetime
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError
from contamination.files import replacing
from contamination.seal.documents import Key, read_bytes, read_model
from contamination.seal.files import SealFiles, require

if TYPE_CHECKING:
    import httpx2

SECONDS = 60.0  # for an authority to answer, from the first to the last byte
MOST_BYTES = 1 << 20  # of an answer; one with a chain of certificates has a few thousand
_HEADERS = {"Content-Type": "application/timestamp-query"}


def stamp(directory: Path, url: str | None) -> tuple[Path, Path]:
    """Write the request for a time stamp; return its path and that of the answer.

    If the address of an authority is given, its answer is written as well. Raises
    InputError for a directory without a key, a commitment that was changed, a time
    stamp that is there already, and an authority that gives none; the request is there
    then, and can be sent later.
    """
    files = SealFiles.of(directory)
    data = read_model(files.key, Key).commitment.stamped
    request_path = files.commitment.with_suffix(".tsq")
    answer_path = files.commitment.with_suffix(".tsr")
    if files.commitment.exists():
        require(files.commitment, data, files.key)
    query = _query(data)
    _write(files.commitment, data)
    _write(request_path, query)
    if url is None:
        return request_path, answer_path
    if answer_path.exists():  # an older date is worth more
        raise InputError(
            f"{answer_path}: there is a time stamp already, and it stays; move it",
        )
    _write(answer_path, _answer_of(url, query, data, request_path))
    return request_path, answer_path


def _query(data: bytes) -> bytes:
    """Return the request to stamp the SHA-256 of some bytes."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    builder = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256)
    request = builder.nonce(nonce=False).cert_request(cert_request=True).build()
    return request.as_bytes()


def _answer_of(url: str, query: bytes, data: bytes, request_path: Path) -> bytes:
    """Return the answer of an authority, which stamps these data.

    Raises InputError for an authority that cannot be reached, answers too late or too
    much, or stamps nothing or something else; the message names the file of the
    request.
    """
    import httpx2
    from anyio.from_thread import start_blocking_portal

    try:
        # a notebook has an event loop of its own
        with start_blocking_portal() as portal:
            answer = portal.call(_post, url, query)
        _check_answer(answer, data)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
        reason = str(error).partition(":")[0]
        raise InputError(
            f"{_without_password(url)}: no time stamp ({reason}); send {request_path} later",
        ) from error
    return answer


async def _post(url: str, query: bytes) -> bytes:
    """Return the body of the answer to a request; raise ValueError if it is no good."""
    import anyio
    import httpx2

    with anyio.move_on_after(SECONDS):
        async with (
            httpx2.AsyncClient(headers=_HEADERS, timeout=SECONDS) as client,
            client.stream("POST", url, content=query) as response,
        ):
            return await _body(response)
    raise TimeoutError(f"no whole answer in {SECONDS:g} s")


async def _body(response: "httpx2.Response") -> bytes:
    """Return the body of an answer, up to a bound."""
    if response.status_code != 200:
        raise ValueError(f"it answers with the status {response.status_code}")
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_BYTES:
            raise ValueError(f"its answer is larger than {MOST_BYTES:,} bytes")
    return bytes(body)


def _check_answer(answer: bytes, data: bytes) -> None:
    """Raise ValueError unless an answer stamps these data."""
    from rfc3161_client import decode_timestamp_response

    response = decode_timestamp_response(answer)
    digest = hashlib.sha256(data).digest()
    if response.status != 0 or response.tst_info.message_imprint.message != digest:
        raise ValueError("it refuses, or stamps something else")


def _without_password(url: str) -> str:
    """Return an address without the name and the password of a user, for messages."""
    return re.sub(r"^(\w[\w+.-]*://)?[^/]*@", r"\1", url)


def stamped_at(token: Path, data: bytes, authority: Path) -> datetime.datetime:
    """Return when an authority has stamped some bytes (UTC).

    The certificates need to be valid at that time, not today; whether one was revoked
    is not checked. `token` is the file of the authority's answer, and `authority` that
    of its root certificate (PEM). Raises InputError for a file that is no answer or no
    certificate, and for an answer that was changed, stamps other bytes, or is not
    signed by an authority that the certificate vouches for.
    """
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import (
        VerificationError,
        VerifierBuilder,
        decode_timestamp_response,
    )

    certificates = read_bytes(authority)
    answered = read_bytes(token)
    try:
        roots = load_pem_x509_certificates(certificates)
    except ValueError as error:
        raise InputError(
            f"{authority}: no certificate in PEM; give the authority's own",
        ) from error
    try:
        answer = decode_timestamp_response(answered)
        VerifierBuilder(roots=roots).build().verify_message(answer, data)
        return answer.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        reason = str(error).partition(":")[0]
        raise InputError(
            f"{token}: no time stamp of this commitment by {authority} ({reason}); give "
            "the answer to its commitment.tsq, and the root certificate of the "
            "authority that gave it"
        ) from error


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)
