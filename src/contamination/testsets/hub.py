"""Whether the hub can be reached, and what to do about its errors."""

from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 3.0  # seconds


def advice_on(error: BaseException, page: str = "its page at huggingface.co") -> str | None:
    """Say what to do about an error of the hub, with the page of the set; None for any other."""
    from huggingface_hub import errors

    known: dict[type[Exception], str] = {
        errors.GatedRepoError: f"it is gated: ask for access on {page}, then log in with "
        "`hf auth login`",
        errors.RepositoryNotFoundError: "check the name; if it is private, log in with "
        "`hf auth login`",
        errors.RevisionNotFoundError: f"check the revision on {page}",
        errors.LocalEntryNotFoundError: "fetch it with `hf download` where there is a network, or "
        "use a local copy (a model's directory, a set's --mirror)",
    }
    return next((advice for kind, advice in known.items() if isinstance(error, kind)), None)


@contextmanager
def asked_once() -> Iterator[None]:
    """Leave the hub alone where it is out of reach: its client asks six times in half a minute."""
    from huggingface_hub import constants, get_session

    before = constants.HF_HUB_OFFLINE
    if not before:
        try:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
        except Exception:  # HTTP client: no common base class over its versions
            constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
