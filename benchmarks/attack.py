"""Attack the audit with bad records, templates, stores and servers, and count how it ends.

    make attack                                                 # all of it, within ten minutes
    python benchmarks/attack.py --fronts stores --seed 7 --first 1234 --times 1     # one of them

Every attempt draws from a stream of its own, so that it can be repeated alone. It ends in one of

- refused: `InputError`, one line that says why;
- repaired: what was damaged was set aside and scored again, with the same result;
- survived: accepted, with the result that an independent reading gives.

Anything else is a failure: another exception, a message of several lines, another result, or more
than 20 seconds. `docs/trust.md` has the counts, and what is not promised.
"""

import argparse
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from attack_records import attack_records, attack_templates
from attack_servers import attack_servers
from attack_stores import attack_stores

from contamination.errors import InputError
from contamination.randomness import random_stream

SECONDS = 20  # that an attempt may take
ENDS = ("refused", "repaired", "survived")
Attack = Callable[[np.random.Generator, Path], str]

FRONTS: dict[str, Attack] = {
    "records": attack_records,
    "templates": attack_templates,
    "stores": attack_stores,
    "servers": attack_servers,
}


def attempt(front: str, seed: int, number: int) -> tuple[str, str]:
    """Make one attempt; return how it ended, and for a failure what was seen."""
    rng = random_stream(seed, "attack", front, number)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
            end = FRONTS[front](rng, Path(folder))
    except InputError as error:
        lines = str(error).splitlines()
        return ("refused", "") if len(lines) == 1 else ("failed", f"{len(lines)} lines: {error}")
    except Exception:
        return "failed", traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return end, ""


def attack(front: str, *, seed: int, first: int, times: int) -> Counter[str]:
    """Make attempts `first` to `first + times - 1`; print every failure with how to repeat it."""
    ends: Counter[str] = Counter()
    for number in tqdm(range(first, first + times), desc=front, unit="attempt", mininterval=1):
        end, seen = attempt(front, seed, number)
        ends[end] += 1
        if seen:
            tqdm.write(f"{front} --seed {seed} --first {number}: {seen}\n")
    return ends


def main() -> None:
    """Attack, print a row of counts for each front, and exit with 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fronts", nargs="+", choices=FRONTS, default=list(FRONTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt")
    parser.add_argument("--times", type=int, default=2000, help="attempts on each front")
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_long)
    found = {
        front: attack(front, seed=asked.seed, first=asked.first, times=asked.times)
        for front in asked.fronts
    }
    columns = ("tried", *ENDS, "failed")
    print("front".ljust(12), *(name.rjust(9) for name in columns))
    for front, ends in found.items():
        counts = (ends.total(), *(ends[name] for name in columns[1:]))
        print(front.ljust(12), *(f"{count:9,}" for count in counts))
    sys.exit(any(ends["failed"] for ends in found.values()))


def _too_long(signum: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


if __name__ == "__main__":
    main()
