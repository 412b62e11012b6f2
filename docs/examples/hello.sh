#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=5:00
#SBATCH --output=hello-%j.out

echo "The script runs on $SLURMD_NODENAME; the job has $SLURM_JOB_NUM_NODES nodes: $SLURM_JOB_NODELIST"
srun --label bash -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME (process $$)"'
srun --ntasks=1 --nodes=1 bash -c 'echo "a second step, $SLURM_JOB_ID.$SLURM_STEP_ID, with one task"'
sleep 2
echo "done"
