"""Words by which servers refuse a request, and the refusals that last."""

import re

import httpx2

from contamination.errors import InputError

TEMPORARY = {408, 409, 429}  # and everything from 500 on but the next two
LASTING = {501, 505}
# Words of servers, whatever the status, for a refusal that lasts, and for its cause.
WORDS_OF_NAN = re.compile(r"\bnan\b|not JSON compliant", re.I)
WORDS_OF_QUOTA = re.compile("insufficient_quota|exceeded your current quota", re.I)
WORDS_THAT_LAST = re.compile(
    "not supported|unsupported|does(?: not|n't) support|not implemented", re.I
)
WORDS_OF_LENGTH = re.compile(
    r"context|too (?:long|large|many tokens)|maximum.{0,20}(?:length|tokens)|"
    r"max_\w*len",
    re.I,
)
WORDS_OF_A_FILTER = re.compile(
    "content.?filter|content management policy|content policy|data_inspection_failed|"
    "inappropriate content|flagged",
    re.I,
)


class Rejected(InputError):
    """The server makes nothing of the request: another form of it may do.

    `words` are the server's own.
    """

    def __init__(self, message: str, words: str = "") -> None:
        super().__init__(message)
        self.words = words

    @property
    def about_length(self) -> bool:
        """Whether the server says that the prompt is too long."""
        return WORDS_OF_LENGTH.search(self.words) is not None


class Filtered(Rejected):
    """A filter of the server refuses this one prompt."""


def may_pass(response: httpx2.Response) -> bool:
    """Whether another try may get another answer."""
    status = response.status_code
    if status in LASTING or (status not in TEMPORARY and status < 500):
        return False
    lasting = (WORDS_OF_NAN, WORDS_OF_QUOTA, WORDS_THAT_LAST)
    return not any(words.search(response.text) for words in lasting)
