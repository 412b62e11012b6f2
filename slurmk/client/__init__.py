"""What runs on the caller's side: one shim for all of Slurm's commands, and ``slurmk`` itself."""
