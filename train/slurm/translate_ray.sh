#!/bin/bash
# Translates a corpus on all the machines of a Slurm allocation:
#   sbatch --nodes 4 train/slurm/translate_ray.sh corpus/ --model outputs/mbart25 --output outputs/translated \
#       --source_column en
# Ray runs on every machine as long as the job, and the command on the first one. Model, corpus and output lie on a disk
# that all machines share. Submitted once more, the job continues. The machines belong to the job alone, as Ray is stopped
# on them at the end.
#SBATCH --job-name=translate
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
set -euo pipefail
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not take it from sbatch since Slurm 22.05
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed --quiet 1p)
srun ray symmetric-run --address "$first:6379" --min-nodes "$SLURM_JOB_NUM_NODES" \
    --num-cpus "$SLURM_CPUS_PER_TASK" --num-gpus "${SLURM_GPUS_ON_NODE:-0}" -- \
    gtransformer translate --engine ray "$@"
