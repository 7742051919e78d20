#!/usr/bin/env bash
# Test sets and answers as evaluation harnesses log them, read from what the real packages write. Each
# package gets an environment of its own in build/harnesses; what the project needs is from .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1 # tiny matrices gain nothing from more, and something else runs beside
export HF_HUB_OFFLINE=1 # nothing here is on the hub, and without a network its client tries for 46 s
at="$PWD/build/harnesses"
written="$at/written" # of tasks, lm_eval takes whatever lies below, so no environment does
mkdir -p "$written"
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for package in lm_eval==0.4.13 inspect_ai==0.3.285; do
  home="$at/${package%%=*}"
  if [ ! -e "$home/.installed" ]; then
    .venv/bin/python -m venv --clear --without-pip "$home"
    # Before the installation, which then brings only what .venv lacks.
    printf '%s\n' "$site" "$PWD/src" > "$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth"
    .venv/bin/python -m pip --python "$home" install --quiet --disable-pip-version-check "$package"
    touch "$home/.installed"
  fi
done
# Every Eval Ever needs a later Python to run; the schema of its records is read from the wheel.
[ -e "$written"/every_eval_ever-0.3.0-*.whl ] || .venv/bin/python -m pip download --quiet --disable-pip-version-check \
  --no-deps --python-version 3.12 --only-binary=:all: --dest "$written" every-eval-ever==0.3.0
rm -rf "$written"/{lm-eval-samples,sealed-samples,inspect}
# All in one process: importing takes longer than running.
"$at/lm_eval/bin/python" - "$written" > "$at/lm_eval.log" 2>&1 <<'END' || { cat "$at/lm_eval.log"; exit 1; }
import runpy
import sys

written = sys.argv[1]
sys.argv = ["", "items", written]
runpy.run_path("tests/fakes/harness_logs.py", run_name="__main__")

from lm_eval.__main__ import cli_evaluate

runs = [("lm-eval-samples", "items,shuffled", ["dummy"])]
for who in ("guesser", "reader"):
    network = ["hf", "--model_args", f"pretrained={written}/{who}", "--device", "cpu"]
    runs.append(("sealed-samples", "sealed", network))
for where, tasks, model in runs:
    kept = ["--log_samples", "--output_path", f"{written}/{where}"]
    sys.argv = ["lm_eval", "--include_path", written, *kept, "--tasks", tasks, "--model", *model]
    cli_evaluate()
END
"$at/inspect_ai/bin/python" tests/fakes/harness_logs.py inspect "$written"
HARNESSES="$written" PYTHONPATH="$PWD/tests" "$at/lm_eval/bin/python" -m pytest -q -m harness -p no:cacheprovider \
  tests/testsets/test_harness.py tests/audit/test_export.py
PYTHONPATH="$PWD/tests" "$at/inspect_ai/bin/python" -m pytest -q --noconftest -p no:cacheprovider \
  tests/scoring/test_inspect_scorer.py
