"""slurmk: Slurm-compatible batch scheduling on Kubernetes."""

__version__ = "0.1.0"

SLURM_VERSION = "26.05.5"
"""The Slurm release whose commands and outputs slurmk has."""
