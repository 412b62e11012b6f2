"""strigger and scrontab: forms, refusals, what is listed."""

from __future__ import annotations

from sides import Case

CLEAN = "; strigger --clear --quiet --user=root"
"""Triggers of a case go with it."""

NUMBERS = (r"(?m)^ *\d+ (?=job|node|slurm|data)",)

_REFUSED = (
    "strigger",
    "strigger --set --get",
    "strigger --set",
    "strigger --set --node",
    "strigger --set --node --down",
    "strigger --set --node -p /bin/true",
    "strigger --set --node --down --program=bin/true",
    "strigger --set -j 999999 --fini -p /bin/true",
    "strigger --set -j foo --fini -p /bin/true",
    "strigger --set --fini -p /bin/true",
    "strigger --set --time -p /bin/true",
    "strigger --set --node --fini -p /bin/true",
    "strigger --set --node=nosuch --up -p /bin/true",
    "strigger --set -n n1 --idle --flags=foo -p /bin/true",
    "strigger --get --fini",
    "strigger --get --user=nosuch",
    "strigger --get --jobid=5",
    "strigger --get extra",
    "strigger --get -v",
    "strigger --clear",
    "strigger --clear --id=999999",
    "strigger --clear --quiet --id=999999",
    "strigger --clear --user=alice",
    "strigger --foo",
    "strigger --usage",
    "strigger -i",
    "scrontab",
    "scrontab -l",
    "scrontab -r",
    "scrontab -e",
    "scrontab -u alice -l",
    "scrontab /nonexistent",
    "echo '0 * * * * true' | scrontab -",
)

_LISTED = (
    "strigger --set --node --down -p /bin/true; strigger --get",
    "strigger --set --node=n1,n2 --drained --up -p /bin/true; strigger --get -N",
    "strigger --set --node --resume --flags=PERM -p '/bin/echo a b'; strigger --get",
    "strigger --set --reconfig -p /bin/true; strigger --get",
    "strigger --set --backup_slurmctld_failure -p /bin/true; strigger --get",
    "strigger --set --primary_database_failure -p /bin/true; strigger --get",
    "strigger --set --primary_slurmdbd_failure -p /bin/true; strigger --get",
    "strigger --set --drained --down -p /bin/true; strigger --get",
    "strigger --set -n n1 --fail --offset=-3 -p /bin/true; strigger --get",
    "strigger --set -n n1 --fail --offset=x -p /bin/true; strigger --get",
    "strigger --set -j {0} --fini --time --offset=-10 --flags=PERM -p '/bin/echo a'; strigger --get",
    "strigger --set -j {0} --down -p /bin/true; strigger --get -j {0}",
    "strigger --set -j {0} --fini -p /bin/true; strigger --get -N -j {0}; strigger --clear -j {0}; strigger --get",
    "strigger --set --node=n1 --down -p /bin/true; strigger --get --node=n1",
    "strigger --set --node=n1 --drained -p /bin/true; strigger --get --drained; strigger --get --down",
    "strigger --set --node=n1 --drained -p /bin/true; strigger --get --user=root -N; strigger --get --user=alice",
)

_STRANGER = (
    "strigger --set --node --down -p /bin/true",
    "strigger --set -j {0} --fini -p /bin/true",
    "strigger --clear --user=root",
    "strigger --clear -j {0}",
    "strigger --get",
)

HELD = ("sbatch -A phys -H --wrap true",)

CASES = [
    *(Case(command) for command in _REFUSED),
    *(Case(f"{command}{CLEAN}", setup=HELD, ignore=NUMBERS, title=command) for command in _LISTED),
    Case(
        f"strigger --set --node=n1 --down -p /bin/true; strigger --get --node=n2{CLEAN}",
        setup=HELD,
        ignore=NUMBERS,
        differs="the reference lists other nodes' triggers too; here --node means the nodes that it names",
        title="strigger --get of another node",
    ),
    *(Case(command, setup=HELD, user="alice") for command in _STRANGER),
]
