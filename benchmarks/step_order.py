"""How long `make reproduce` takes by the clock, by the order of its steps alone.

python benchmarks/step_order.py CHECKOUT [CHECKOUT ...]

Each checkout is copied. Instead of each stage a program runs that sleeps an eighth of the time
that the stage took in the reference run, and makes its target. Prints the minutes of a whole run
at that pace, and how long one of the two places was idle.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from contamination.cli.printing import print_table
from contamination.files import read_json

SPEED = 8  # times as fast as the reference run
PLACES = 2  # steps that make runs at a time
UNTIMED = {"manifest": 2.0, "report": 17.0, "explorer": 22.0}  # seconds, by the files of that run
COPIED = (
    "Makefile",
    "README.md",
    "requirements.lock",
    "pyproject.toml",
    "data",
    "docs",
    "notebooks",
    "paper",
    "profiles",
    "scripts",
    "src",
    "results/reference/manifest.json",
    "results/reference/pocket/tables/mmlu_subsets.csv",
)
STAND_IN = """#!/bin/sh
# -m reproduction VERB [NAME] ... --build B --results R
verb=$3; name=$(basename -- "$4" .ipynb)
[ "$verb" = rules ] && exec PYTHON "$@"
[ "$verb" = summary ] && exit
case $4 in -*) step=$verb;; *) step="$verb $name";; esac
begun=$(date +%s.%N)
sleep $(grep "^$step=" seconds | cut -d = -f 2)
while [ $# -gt 0 ]; do
  case $1 in --build) build=$2;; --results) results=$2;; esac; shift
done
case $verb in
  corpus) target=$build/corpus/corpus.json;;
  train) target=$build/models/$name/training.json;;
  score) target=$build/stores/$name.json;;
  measure) target=$build/scores/$name.json;;
  notebook) target=$results/notebooks/$name.ipynb;;
  manifest) target=$results/manifest.json;;
  explorer) target=$results/explorer.html;;
  report) target=$results/report/report.html;;
esac
mkdir -p $(dirname $target); touch $target
echo $begun $(date +%s.%N) >> times
"""


def main(checkouts: list[str]) -> None:
    """Run the steps of each checkout and print the times."""
    rows = []
    for checkout in checkouts:
        with tempfile.TemporaryDirectory() as folder:
            times = run_steps(Path(checkout).absolute(), Path(folder))
        whole = max(end for _, end in times) - min(begun for begun, _ in times)
        busy = sum(end - begun for begun, end in times)
        minutes = [SPEED * seconds / 60 for seconds in (whole, PLACES * whole - busy)]
        rows.append((checkout, *(f"{number:.1f}" for number in minutes)))
    print_table(("checkout", "minutes", "idle"), rows, title="make reproduce, profile laptop")


def run_steps(checkout: Path, copy: Path) -> list[tuple[float, float]]:
    """Return when each step began and ended, in seconds, of a run in `copy`."""
    for name in COPIED:
        source = checkout / name
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy(source, target)
    program = copy / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN.replace("PYTHON", sys.executable))
    program.chmod(0o755)
    (copy / ".venv" / ".installed").touch()
    timed = read_json(copy / "results" / "reference" / "manifest.json")["steps"]
    seconds = UNTIMED | {step: record["seconds"] for step, record in timed.items()}
    lines = [f"{step}={number / SPEED:.3f}\n" for step, number in seconds.items()]
    (copy / "seconds").write_text("".join(lines))
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    subprocess.run(["make", "reproduce"], cwd=copy, env=environment, check=True, stdout=2)
    times = []
    for line in (copy / "times").read_text().splitlines():
        begun, ended = line.split()
        times.append((float(begun), float(ended)))
    return times


if __name__ == "__main__":
    main(sys.argv[1:])
