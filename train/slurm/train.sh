#!/bin/bash
# Trains on all the machines of a Slurm allocation:
#   sbatch --nodes 4 train/slurm/train.sh mbart25 --source_column en --target_column de ...
# torchrun starts a process per GPU on every machine. The data and `output_dir` lie on a disk that all machines share.
# Submitted once more, the job continues from its last checkpoint.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
set -euo pipefail
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not take it from sbatch since Slurm 22.05
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed --quiet 1p)
srun torchrun --nnodes "$SLURM_JOB_NUM_NODES" --nproc-per-node "$SLURM_GPUS_ON_NODE" \
    --rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID" --rdzv-endpoint "$first:29500" \
    train/train.py "$@"
