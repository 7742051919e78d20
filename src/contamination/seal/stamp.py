"""A date that is not the author's word: a time stamp of the commitment (RFC 3161).

What is stamped are the bytes of `commitment.json`, by their SHA-256, so nobody who stamps them
learns anything. `openssl ts` reads and writes the same files: a request (`commitment.tsq`) and the
answer of a time-stamping authority to it (`commitment.tsr`).
"""

import datetime
from pathlib import Path

from contamination.errors import InputError
from contamination.files import replacing
from contamination.seal.files import Key, SealFiles, read_bytes, read_model, to_json

SECONDS = 60.0  # for an authority to answer
MOST_ANSWER = 1 << 20  # bytes of it


def stamp(directory: Path, url: str | None) -> SealFiles:
    """Write the request for a sealed or committed directory, and the answer of a server if named.

    Raises InputError for what is no such directory, and for a server that gives no stamp; the
    request is there in any case, and can be sent later.
    """
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response

    path = SealFiles.of(directory, "").key
    key = read_model(path, Key)
    files, data = SealFiles.of(directory, key.statement.name), to_json(key.commitment)
    request = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256)
    asked = request.nonce(nonce=False).cert_request(cert_request=True).build().as_bytes()
    _write(files.commitment, data)
    _write(files.request, asked)
    if url is None:
        return files
    import httpx2

    headers = {"Content-Type": "application/timestamp-query"}
    try:
        answer = httpx2.post(url, content=asked, headers=headers, timeout=SECONDS)
        answer.raise_for_status()
        if decode_timestamp_response(answer.content).status != 0:
            raise ValueError("it refuses the request")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise InputError(
            f"--tsa {url}: no time stamp ({str(error)[:100]}); send {files.request} later"
        ) from error
    _write(files.token, answer.content)
    return files


def stamped_at(token: Path, data: bytes, authority: Path) -> datetime.datetime:
    """Return when an authority has stamped some bytes, by its answer and a root certificate (PEM).

    Raises InputError for what is no answer or no certificate, or an answer that was changed, stamps
    anything else, or is not signed by an authority that the certificate vouches for.
    """
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        roots = load_pem_x509_certificates(read_bytes(authority))
    except ValueError as error:
        raise InputError(f"{authority}: no certificates in PEM; give those of the --ca") from error
    try:
        answer = decode_timestamp_response(read_bytes(token))
        VerifierBuilder(roots=roots).build().verify_message(answer, data)
        return answer.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        raise InputError(
            f"{token}: no time stamp of this commitment by {authority} ({error}); give the answer "
            "to its commitment.tsq, and the root certificate of the authority that gave it"
        ) from error


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)
