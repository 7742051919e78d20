"""Public randomness from after the commitment: a round of drand's beacon.

The League of Entropy signs the number of a round every three seconds by a threshold
key, so nobody has the signature before its time, and there is one signature that
verifies. Chain "quicknet", scheme bls-unchained-g1-rfc9380; https://docs.drand.love and
`curl https://api.drand.sh/HASH/info` give the constants below. A signature is verified
here without a network.
"""

import datetime
import functools
import hashlib
import sys

from contamination.errors import InputError

CHAIN = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
PUBLIC_KEY = (
    "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c"
    "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb"
    "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
)
# of round 1, in seconds since 1970 (UTC), and between rounds
GENESIS, PERIOD = 1_692_803_367, 3
MOST_ROUNDS = 1 << 34  # in 1,600 years
_DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"


def round_at(time: datetime.datetime) -> int:
    """Return the first round that is signed at a time or after it."""
    return max(1, 1 - int((GENESIS - time.timestamp()) // PERIOD))


def time_of(number: int) -> datetime.datetime:
    """Return when a round is signed (UTC)."""
    seconds = GENESIS + (number - 1) * PERIOD
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def url_of(number: int) -> str:
    """Return the address of the signature of a round."""
    return f"https://api.drand.sh/{CHAIN}/public/{number}"


@functools.cache  # it takes two seconds, and a command asks twice
def check_signature(number: int, signature: str) -> None:
    """Raise InputError unless `signature` (hexadecimal) is the beacon's of that round.

    e(signature, g2) = e(H(SHA-256(round as 8 bytes)), public key) on BLS12-381 (RFC
    9380), as one product, whose slow last power is then taken once.
    """
    limit = sys.getrecursionlimit()
    from py_ecc.bls.g2_primitives import pubkey_to_G1, signature_to_G2, subgroup_check
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.fields import optimized_bls12_381_FQ12 as FQ12
    from py_ecc.optimized_bls12_381.optimized_curve import G2, neg
    from py_ecc.optimized_bls12_381.optimized_pairing import final_exponentiate, pairing

    # under py_ecc's, deeply nested JSON would end the process
    sys.setrecursionlimit(limit)
    wrong = InputError(
        f"signature={signature[:16]!a}... is not the beacon's of round {number:,}; take "
        f"`signature` from {url_of(number)}",
        parameter="signature",
    )
    try:
        data = bytes.fromhex(signature)
        if len(data) != 48 or signature != data.hex():
            raise wrong
        # In this scheme the groups change places.
        point = pubkey_to_G1(data)  # type: ignore[arg-type]
    except ValueError as error:
        raise wrong from error
    public = signature_to_G2(bytes.fromhex(PUBLIC_KEY))  # type: ignore[arg-type]
    message = hashlib.sha256(number.to_bytes(8, "big")).digest()
    hashed = hash_to_G1(message, _DOMAIN, hashlib.sha256)  # type: ignore[arg-type]
    if not subgroup_check(point):
        raise wrong
    signed = pairing(G2, point, final_exponentiate=False)
    expected = pairing(public, neg(hashed), final_exponentiate=False)
    if final_exponentiate(signed * expected) != FQ12.one():
        raise wrong
