"""What ReFrame knows of the embedded cluster: its partitions, with both of ReFrame's Slurm schedulers."""

site_configuration = {
    "systems": [
        {
            "name": "embedded",
            "hostnames": [".*"],
            "partitions": [
                {"name": name, "scheduler": scheduler, "launcher": "srun", "environs": ["builtin"], "access": [f"-p {name}"]}
                for name, scheduler in (("debug", "slurm"), ("cpu", "squeue"))
            ],
        }
    ],
    "environments": [{"name": "builtin", "cc": "cc"}],
    "general": [{"check_search_path": ["."], "purge_environment": False}],
}
