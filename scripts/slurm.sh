#!/bin/bash
# Use all GPUs of a SLURM job: score a test set and print the p-value, or run `make`.
# See docs/how-to/reproduce.md.
#
#   sbatch scripts/slurm.sh MODEL DATASET [options that `contamination score` and `test` share]
#   sbatch scripts/slurm.sh make TARGET [PROFILE=...]
#
# Edit the lines below for your cluster. A job that was cut short is submitted again as it was: it
# does only what is missing. The directory of the job must lie on a file system that all nodes see.

#SBATCH --job-name=contamination
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
#SBATCH --requeue

set -euo pipefail

bin="${BIN:-.venv/bin}"
export PATH="$(cd "$bin" && pwd):$PATH"
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
processes="${SLURM_GPUS_ON_NODE:-1}"
threads=$((${SLURM_CPUS_PER_TASK:-1} / processes))
export OMP_NUM_THREADS=$((threads > 0 ? threads : 1))

# One torchrun on each node. If a process dies, all start again and go on with what is stored.
launch="srun --kill-on-bad-exit=1 torchrun --nnodes $SLURM_NNODES --nproc-per-node $processes \
  --max-restarts 3 --rdzv-backend c10d --rdzv-id $SLURM_JOB_ID \
  --rdzv-endpoint $first:$((20000 + SLURM_JOB_ID % 10000))"

# Every pass over a model is launched on all nodes, one after the other; notebooks run on this one.
if [ "$1" = make ]; then
  exec "$@" LAUNCH="$launch"
fi

$launch "$bin/contamination" score "$@"

# Everything is stored: this reads it, in one process. Status 1 says that the test rejects.
"$bin/contamination" test "$@" || [ $? -eq 1 ]
