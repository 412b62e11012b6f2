"""slurmk: Slurm-compatible batch scheduling on Kubernetes."""

__version__ = "0.1.0"
