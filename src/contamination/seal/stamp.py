"""A date that is not the author's word: a time stamp of the commitment (RFC 3161).

What is stamped are the bytes of `commitment.json`, by their SHA-256, so nobody who stamps them
learns anything. `openssl ts` reads and writes the same files: a request (`commitment.tsq`) and the
answer of a time-stamping authority to it (`commitment.tsr`).
"""

import datetime
import hashlib
from pathlib import Path

from contamination.errors import InputError
from contamination.files import replacing
from contamination.seal.files import Key, SealFiles, read_bytes, read_model, require

SECONDS = 60.0  # for an authority to answer


def stamp(directory: Path, url: str | None) -> tuple[Path, Path]:
    """Write the request for a sealed or committed directory, and the answer of a server if named.

    Returns the paths of request and answer. Raises InputError for what is no such directory, a
    commitment that was changed, a stamp that is there already, and a server that gives none; the
    request is there then, and can be sent later.
    """
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response

    files = SealFiles.of(directory)
    data, path = read_model(files.key, Key).commitment.stamped, files.commitment
    asked, token = path.with_suffix(".tsq"), path.with_suffix(".tsr")
    if path.exists():
        require(path, data, files.key)
    request = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256)
    query = request.nonce(nonce=False).cert_request(cert_request=True).build().as_bytes()
    _write(path, data)
    _write(asked, query)
    if url is None:
        return asked, token
    if token.exists():  # an older date is worth more
        raise InputError(f"{token}: there is a time stamp already, and it stays; move it")
    import httpx2

    headers = {"Content-Type": "application/timestamp-query"}
    try:
        response = httpx2.post(url, content=query, headers=headers, timeout=SECONDS)
        if response.status_code != 200:
            raise ValueError(f"it answers with the status {response.status_code}")
        answer = decode_timestamp_response(response.content)
        digest = hashlib.sha256(data).digest()
        if answer.status != 0 or answer.tst_info.message_imprint.message != digest:
            raise ValueError("it refuses, or stamps something else")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        reason = str(error).partition(":")[0]
        raise InputError(
            f"{url}: no time stamp ({reason}); send {asked} later", parameter="tsa"
        ) from error
    _write(token, response.content)
    return asked, token


def stamped_at(token: Path, data: bytes, authority: Path) -> datetime.datetime:
    """Return when an authority has stamped some bytes, by its answer and a root certificate (PEM).

    The certificates need to be valid at that time, not today; whether one was revoked is not asked.

    Raises InputError for what is no answer or no certificate, or an answer that was changed, stamps
    anything else, or is not signed by an authority that the certificate vouches for.
    """
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    vouching, answered = read_bytes(authority), read_bytes(token)
    try:
        roots = load_pem_x509_certificates(vouching)
    except ValueError as error:
        raise InputError(f"{authority}: no certificate in PEM; give the authority's own") from error
    try:
        answer = decode_timestamp_response(answered)
        VerifierBuilder(roots=roots).build().verify_message(answer, data)
        return answer.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        reason = str(error).partition(":")[0]
        raise InputError(
            f"{token}: no time stamp of this commitment by {authority} ({reason}); give the answer "
            "to its commitment.tsq, and the root certificate of the authority that gave it"
        ) from error


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)
