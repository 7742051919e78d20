#!/bin/sh
# Measure one GPU within eight minutes, without a network: tokens per second, profile and memory.
#
#   sh benchmarks/gpu.sh               rows of docs/measurements/throughput.csv
#   sh benchmarks/gpu.sh --rehearse    tiny shapes on the CPU, in seconds; their numbers mean nothing
#
# PYTHON names a Python with PyTorch (2.11 or later), transformers and accelerate. WHEELS names a
# folder of wheels for what else it lacks; fill it where there is a network:
#
#   pip download --only-binary=:all: --dest wheels pydantic platformdirs
#
# Each row is printed once it is measured. Options are passed on (gpu.py --help).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
PYTHONPATH="$here/../src${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${WHEELS:-}" ]; then
  site=$(mktemp -d)
  trap 'rm -rf "$site"' EXIT
  "$python" -m pip install --quiet --no-index --no-deps --target "$site" "$WHEELS"/*.whl
  PYTHONPATH="$PYTHONPATH:$site"
fi
export PYTHONPATH HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
missing=$("$python" -c '
from importlib.util import find_spec
needed = ["torch", "transformers", "accelerate", "pydantic", "platformdirs"]
print(*[name for name in needed if find_spec(name) is None])
')
if [ -n "$missing" ]; then
  echo "$python lacks $missing; name a folder of wheels that has it (WHEELS=folder)" >&2
  exit 2
fi
timeout 460 "$python" "$here/gpu.py" "$@"
