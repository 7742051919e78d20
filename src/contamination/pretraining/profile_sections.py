"""A profile cut into the sections that the stages depend on, for `make`.

Each section is a file that is rewritten only if its content changed, so that editing the notebooks'
parameters does not train a model again.
"""

from dataclasses import asdict
from pathlib import Path

from contamination.files import write_text
from contamination.pretraining.profile import Profile

SECTIONS = {
    "corpus": ("seed", "corpus", "canaries"),
    "training": ("seed", "canaries", "model", "training"),
    "sizes": ("seed", "sizes", "training"),
    "scoring": ("seed", "canaries", "scoring"),
    "notebooks": ("seed", "notebooks"),
}


def write_sections(profile: Profile, directory: Path) -> None:
    """Write `<section>.txt` for every section whose content differs from the file that is there."""
    content = asdict(profile)
    for section, keys in SECTIONS.items():
        path = directory / f"{section}.txt"
        text = "".join(f"{key}: {content[key]!r}\n" for key in keys)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
