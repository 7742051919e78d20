"""Peak memory of a full-sequence test, by number of permutations.

    .venv/bin/python benchmarks/memory.py

Scores and tests 50 shards under a random model of five million parameters, each number of
permutations in a process of its own, and prints the peak of its resident memory.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from throughput import make_inputs

SHARDS, EXAMPLES = 50, 200
PERMUTATIONS = (25, 100, 250)


def audit_here(directory: str, permutations: int) -> None:
    """Audit the model in `directory`, and print tokens, p and the peak memory."""
    from contamination.audit import Request, run_audit
    from contamination.testsets.example_set import ExampleSet

    strings = json.loads((Path(directory) / "strings.json").read_text())
    examples = tuple(f"{strings[i % len(strings)][i : i + 120]}\n" for i in range(EXAMPLES))
    found = run_audit(
        directory,
        ExampleSet("strings", examples, "text/1", "made up"),
        Request(
            ["sharded_exact"],
            shards=SHARDS,
            permutations=permutations,
            directory=Path(directory) / f"stores-{permutations}",
        ),
    )
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    print(
        f"{permutations:4d} permutations: {found.tokens_scored:>10,} tokens, "
        f"{found.tokens_scored / found.seconds:>8,.0f} tokens/s, peak {peak:,.0f} MB"
    )


def main() -> None:
    """Measure every number of permutations."""
    with tempfile.TemporaryDirectory() as folder:
        make_inputs("small", Path(folder), factor=1)
        for permutations in PERMUTATIONS:
            subprocess.run(
                [sys.executable, __file__, folder, str(permutations)],
                check=True,
                stderr=subprocess.DEVNULL,
            )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        audit_here(sys.argv[1], int(sys.argv[2]))
    else:
        main()
