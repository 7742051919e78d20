"""`make rehearse`: the profile `open` from end to end, on stand-ins that a hub on loopback serves.

Every part of a real run that a machine without the hub and without GPUs can show takes place: the
plan, requests to the hub, a gated model, sharded and pickled weights, data sets in the hub's own
formats, checksums, every notebook and the report. Models are tiny and sets made up, so the numbers
mean nothing, which the report says on every page. At the end it is checked that whatever can fail
has said why, and that what was planted was found.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from filelock import FileLock, Timeout

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from rehearsal.check import check  # noqa: E402
from rehearsal.models import model_files  # noqa: E402
from rehearsal.sets import examples_of, prose, serve_sets  # noqa: E402
from rehearsal.teach import OPTIONS, teach  # noqa: E402

from contamination.scoring.models import load_models  # noqa: E402
from contamination.testsets.registry import entries  # noqa: E402
from fakes.hub_server import HubServer, Repository  # noqa: E402
from reproduction.report.notebooks import notebook_parameters  # noqa: E402
from reproduction.run.experiment import Experiment  # noqa: E402

PROFILE = ROOT / "profiles" / "open.yaml"
BUILD = ROOT / "build" / "rehearsal"
RESULTS = ROOT / "results" / "rehearsal"
CACHE = BUILD / "cache"
# Upper limits on the parameters of the profile's notebooks, so that a run takes minutes.
LIMITS = {
    "permutations": 3,
    "resamples": 20,
    "neighbours": 1,
    "max_records": 50,
    "texts": 6,
    "length": 256,
}
# Otherwise: of 57 small subsets one test, and the lengths of which there are fewest texts.
OTHERWISE = {
    "04_mmlu_fisher": {"tests": ["sharded_t"], "shards": 6},
    "06_wikimia": {"lengths": [128, 256]},
}
AUDIT = "03_open_model_audit"
# A notebook of the profile `checkpoints`, with the sets of its figures and small numbers.
RELEASED = "12_released_checkpoints"
RELEASED_SETTINGS = {
    "shards": [5, 10],
    "shown_shards": 10,
    "fewer_permutations": [1, 2],
    "replicates": 3,
    "length": 64,
    "spans": 20,
    "max_records": 50,
    "permutations": 3,
}
TOKEN = "hf_rehearsal"

# What goes wrong, each once.
GATED = "meta-llama/Llama-2-7b-hf"  # and this machine has no token
TOO_LARGE = "huggyllama/llama-65b"  # for the memory
OTHER_CHECKSUM = "gsm8k"
REASONS = {
    GATED: "it is gated",
    TOO_LARGE: "its weights take",
    OTHER_CHECKSUM: "checksum",
}
# It knows by heart what was planted in it at least so often; more would take more than seconds.
TAUGHT, LEARNT = "contam-1.4b-dupcount-higher", 100
VAST = {"hidden_size": 250_000, "num_attention_heads": 1_000, "intermediate_size": 1_000_000}


def main() -> None:
    """Make the stand-ins, run the profile against them, and check what came out."""
    BUILD.parent.mkdir(exist_ok=True)
    lock = FileLock(f"{BUILD}.lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        sys.exit(f"error: another rehearsal runs in {BUILD}: wait for it")
    for folder in (BUILD, RESULTS):
        shutil.rmtree(folder, ignore_errors=True)
    CACHE.mkdir(parents=True)
    hub = HubServer()
    registry = CACHE / "registry.json"
    registry.write_text(json.dumps({"sets": serve_sets(hub, OTHER_CHECKSUM), "families": {}}))
    serve_models(hub)
    print(f"{hub.url}: {len(hub.models)} models and {len(entries())} sets", flush=True)
    profile = BUILD / "open.yaml"
    notebooks = shortened()
    profile.write_text(yaml.safe_dump(notebooks, sort_keys=False))
    own = {"P": profile, "B": BUILD, "R": RESULTS}
    paths = [f"{name}={path.relative_to(ROOT)}" for name, path in own.items()]
    for target in ("plan", "reproduce"):
        run(["make", target, "PROFILE=open", "JOBS=2", *paths], surroundings(hub, registry))
    # Who has a token is served.
    known = surroundings(hub, registry) | {"HF_TOKEN": TOKEN, "HF_HOME": str(CACHE / "hf-token")}
    program = str(Path(sys.executable).with_name("contamination"))
    run([program, "test", GATED, "arc_easy", "--store", str(BUILD / "gated")], known)
    check(
        RESULTS,
        notebooks=list(notebooks["notebooks"]),
        reasons=REASONS,
        taught=[TAUGHT, *learnt()],
    )


def learnt() -> list[str]:
    """Return the sets that were planted often enough in the model that is taught."""
    planted = load_models()[TAUGHT].planted
    return [name for name, count in planted.items() if count >= LEARNT]


def shortened() -> dict[str, Any]:
    """Return the profile with smaller numbers and all of its notebooks, models and sets.

    The audit gets the model that is taught as well, and the sets that it has learnt. The notebook
    of the released checkpoints, of another profile, takes part as well.
    """
    experiment = Experiment(PROFILE, BUILD)
    notebooks = {}
    for name, given in experiment.profile.notebooks.items():
        known = notebook_parameters(ROOT / "notebooks" / f"{name}.ipynb", experiment)
        small = {key: min(known[key], most) for key, most in LIMITS.items() if key in known}
        notebooks[name] = {**given, **small, **OTHERWISE.get(name, {})}
    notebooks[RELEASED] = {**RELEASED_SETTINGS, "models": [TAUGHT]}
    audit = notebooks[AUDIT]
    audit |= {"models": [*audit["models"], TAUGHT], "sets": [*audit["sets"], *learnt()]}
    return {"seed": experiment.profile.seed, "notebooks": notebooks}


def serve_models(hub: HubServer) -> None:
    """Put a stand-in for every model of the registry on the hub."""
    text = prose()
    hub.token = TOKEN
    for entry in load_models().values():
        learn, options = None, {}
        if entry.name == TAUGHT:
            sets = {examples_of(entries()[name]): entry.planted[name] for name in learnt()}
            learn = partial(teach, copies=sets)
            options = OPTIONS
        files = model_files(entry, text, learn=learn, **options)
        repository = hub.models[entry.id] = Repository(gated=entry.id == GATED)
        if entry.id == TOO_LARGE:
            files["config.json"] = json.dumps(json.loads(files["config.json"]) | VAST).encode()
        repository.push(files)
        if entry.revision:
            repository.push(files, entry.revision)


def surroundings(hub: HubServer, registry: Path) -> dict[str, str]:
    """Return the environment of a machine that knows no other hub, and has no token."""
    foreign = ("HF_", "HUGGING", "TRANSFORMERS_", "MAKE", "MFLAGS", "CONTAMINATION_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(CACHE / "hf"),
        "NO_PROXY": "127.0.0.1,localhost",
        "OMP_NUM_THREADS": "1",  # two stages at a time
        "CONTAMINATION_CACHE": str(CACHE / "sets"),
        "CONTAMINATION_REGISTRY": str(registry),
        "CONTAMINATION_REHEARSAL": "1",
    }


def run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a command; it and all that it started end with this program. Exits if it fails."""
    process = subprocess.Popen(command, env=environment, cwd=ROOT, start_new_session=True)
    try:
        status = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
    if status:
        sys.exit(f"error: {' '.join(command)} ended with status {status}")


if __name__ == "__main__":
    started = time.perf_counter()
    torch.set_num_threads(1)  # tiny matrices gain nothing from more
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"rehearsed in {time.perf_counter() - started:.0f} s")
