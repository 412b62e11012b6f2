"""Slurm's commands, one module each: what was typed and by whom, to text and an exit code."""
