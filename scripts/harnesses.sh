#!/usr/bin/env bash
# Test sets and answers as evaluation harnesses log them, read from what the real packages write. Each
# package gets an environment of its own in build/harnesses; what the project needs is from .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
at="$PWD/build/harnesses"
mkdir -p "$at"
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for package in lm_eval==0.4.13 inspect_ai==0.3.285; do
  home="$at/${package%%=*}"
  if [ ! -e "$home/.installed" ]; then
    .venv/bin/python -m venv --clear "$home"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
    touch "$home/.installed"
  fi
done
# Every Eval Ever needs a later Python to run; the schema of its records is read from the wheel.
[ -e "$at"/every_eval_ever-0.3.0-*.whl ] || .venv/bin/python -m pip download --quiet --disable-pip-version-check \
  --no-deps --python-version 3.12 --only-binary=:all: --dest "$at" every-eval-ever==0.3.0
for package in lm_eval inspect_ai; do
  printf '%s\n' "$site" "$PWD/src" > "$("$at/$package/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth"
done
.venv/bin/python tests/fakes/harness_logs.py items "$at"
rm -rf "$at/lm-eval-samples" "$at/sealed-samples" "$at/inspect"
"$at/lm_eval/bin/python" -m lm_eval --model dummy --tasks items,shuffled --include_path "$at" \
  --log_samples --output_path "$at/lm-eval-samples" > "$at/lm_eval.log" 2>&1 || { cat "$at/lm_eval.log"; exit 1; }
for who in guesser reader; do
  "$at/lm_eval/bin/python" -m lm_eval --model hf --model_args "pretrained=$at/$who" --device cpu --tasks sealed \
    --include_path "$at" --log_samples --output_path "$at/sealed-samples" > "$at/lm_eval.log" 2>&1 || { cat "$at/lm_eval.log"; exit 1; }
done
"$at/inspect_ai/bin/python" tests/fakes/harness_logs.py inspect "$at"
HARNESSES="$at" PYTHONPATH="$PWD/tests" "$at/lm_eval/bin/python" -m pytest -q -p no:cacheprovider \
  tests/testsets/test_harness.py tests/audit/test_report.py
PYTHONPATH="$PWD/tests" "$at/inspect_ai/bin/python" -m pytest -q --noconftest -p no:cacheprovider \
  tests/scoring/test_inspect_scorer.py
