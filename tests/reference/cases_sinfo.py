"""sinfo, and scontrol's show of configuration, nodes, partitions, host lists, topology and licences."""

from __future__ import annotations

from sides import Case

HOST = (r"CPULoad=\S+", r"FreeMem=\S+", r"LastBusyTime=\S+", r"BootTime=\S+", r"SlurmdStartTime=\S+")
"""What depends on the machine and on when each side was started."""

CONFIG = (
    r"(?m)^(Configuration data|BOOT_TIME|NEXT_JOB_ID|MaxDBDMsgs) .*$",
    r"(?m)^(SLURM_VERSION|SLURM_CONF|FirstJobId) .*$",
)

IDLE = (
    "sinfo",
    "sinfo -s",
    "sinfo -h",
    "sinfo -R",
    "sinfo -h -R -l",
    "sinfo -h -l",
    "sinfo -h -s -l",
    "sinfo -p gpu",
    "sinfo -p gpu,cpu",
    "sinfo -p nope",
    "sinfo -n n1,n5",
    "sinfo -n nope",
    "sinfo -t idle",
    "sinfo -t IDLE,drain",
    "sinfo -t 'idle&drain'",
    "sinfo -t alloc,drain",
    "sinfo -t foo",
    "sinfo -t all -h",
    "sinfo -a",
    "sinfo -d",
    "sinfo -r",
    "sinfo -e",
    "sinfo -T",
    "sinfo -S P",
    "sinfo -M reference",
    "sinfo -N -p debug",
    "sinfo -N -p debug -h -l",
    "sinfo -N -h -p debug -S -N",
    "sinfo -o ''",
    "sinfo -o '%q'",
    "sinfo -o '%n %h %T'",
    "sinfo -o '%P'",
    "sinfo -o '%N'",
    "sinfo -o '%C'",
    "sinfo -o '%m %c'",
    "sinfo -S N -o '%G %f'",
    "sinfo -S N -e -o '%c %m %N'",
    "sinfo -o '%#P|%.#N|%P%%|%'",
    "sinfo -o '%.30a|%12b|%.9c|%d|%g|%.3h|%i|%l|%.9m|%p|%r|%s|%t|%u'",
    "sinfo -o '%w|%z|%A|%B|%C|%D|%E|%F|%.4G|%4G|%H|%I|%L|%M|%N|%P|%R|%S|%T|%U|%V|%X|%Y|%Z'",
    "sinfo -O nodes,foo",
    "sinfo -O nodelist:30,cpus,memory:8",
    "sinfo -O AllocMem,AllocNodes,Available,Comment,Cores,CPUs,CPUsState,DefaultTime,Disk,Extra,Features,features_act",
    "sinfo -O Gres,GresUsed:30,Groups,MaxCPUsPerNode,Memory,NodeAddr,NodeAI,NodeAIOT,NodeHost,NodeList,OverSubscribe",
    "sinfo -O Partition,PartitionName,Port,PreemptMode,PriorityJobFactor,PriorityTier,Reason,Root,Size,Sockets",
    "sinfo -O SocketCoreThread,StateCompact,StateComplete,StateLong,Threads,Time,TimeStamp,User,UserLong,Weight",
    "sinfo -i x",
    "sinfo -Z",
    "sinfo --format",
    "sinfo -n 'n[1'",
    "sinfo -n 'n[1-99999999999]'",
    "SINFO_FORMAT='%P %D' sinfo",
    "SINFO_PARTITION=gpu sinfo",
    "SINFO_SORT=-P sinfo",
    "scontrol show partition",
    "scontrol -o show partition gpu",
    "scontrol show partition nope",
    "scontrol show part=cpu",
    "scontrol show node n9",
    "scontrol show node 'n[1'",
    "scontrol show node n1 n2",
    "scontrol show hostnames 'n[1-3],r[1-2]n[01-03]'",
    "scontrol show hostnames 'n[3-1]'",
    "scontrol show hostnames 'n[1-99999999999]'",
    "scontrol show hostnames",
    "SLURM_NODELIST=n[1-2] scontrol show hostnames",
    "scontrol show hostlist n3,n1,n2,login",
    "scontrol show hostlist n10,n9,n01",
    "scontrol show hostlist 'n[1-2'",
    "scontrol show hostlistsorted n3,n1,n2,login",
    "scontrol show hostlistsorted n010,n9,n10,r10n1,r2n1",
    "scontrol show topology",
    "scontrol show topology node=n1",
    "scontrol show topology switch=spine",
    "scontrol show topology nope",
    "scontrol show licenses",
    "scontrol -o show lic matlab",
    "scontrol show lic nope",
    "scontrol show reservation",
    "scontrol show reservation foo",
    "scontrol ping",
)

NAMES = tuple(
    "AllocMem AllocNodes Available Cluster Comment Cores CPUs CPUsLoad CPUsState DefaultTime Disk Extra Features features_act "  # noqa: SIM905
    "FreeMem Gres GresUsed Groups MaxCPUsPerNode Memory NodeAddr NodeAI NodeAIOT NodeHost NodeList Nodes OverSubscribe "
    "Partition PartitionName Port PreemptMode PriorityJobFactor PriorityTier Reason Reservation Root Size Sockets "
    "SocketCoreThread StateCompact StateComplete StateLong Threads Time TimeStamp User UserLong Version Weight share".split()
)
"""Every field of -O, and the name that is taken besides."""
LETTERS = "ABCDEFGHILMNOPRSTUVXYZabcdefghilmnoprstuvwz"
STATES = tuple(
    "unknown down idle allocated mixed future drain drained draining no_respond reserved planned blocked cloud completing "  # noqa: SIM905
    "powering_down powered_down power_down powering_up power_up inval fail maint reboot reboot^ external dynamic_future "
    "dynamic_norm alloc mix comp drng futr unk plnd resv pow_dn pow_up ALL Idle idl i xyz '' , idle,, 'idle&mixed' "
    "'idle&' npc perfctrs".split()
)
MEASURED = {
    "CPUsLoad": (r" *(\d+\.\d\d|N/A)(-\d+\.\d\d)? *",),
    "O": (r" *(\d+\.\d\d|N/A)(-\d+\.\d\d)? *",),
    "FreeMem": (r" *(\d{3,}|N/A)(-\d+)? *",),
    "e": (r" *(\d{3,}|N/A)(-\d+)? *",),
    "Version": (r" *\S+ *",),
    "v": (r" *\S+ *",),
}
WELL = "n[3-8]"
"""Nodes that nobody takes away."""


def _fields() -> list[Case]:
    """Each field alone, by name and by letter, narrow and wide and to the right, for a node, a partition and all."""
    forms = [(name, f"sinfo -n {WELL} -O nodelist:20,{name}:30") for name in NAMES]
    forms += [(name, f"sinfo -h -p cpu -O {name}:.5") for name in NAMES]
    forms += [(name, f"sinfo -h -N -n n3,n5 -p debug -O {name}") for name in NAMES]  # of several partitions the order changes
    forms += [(letter, f"sinfo -n {WELL} -o '%N|%{letter}|%.4{letter}|%9{letter}'") for letter in LETTERS]
    forms += [(letter, f"sinfo -h -e -p cpu -o '%{letter}'") for letter in LETTERS]
    return [
        Case(command, ignore=MEASURED.get(name, ()))
        for name, command in forms
        if not (name in MEASURED and (command.endswith(":.5") or "|%.4" in command or " -e " in command))
    ]


SORTS = tuple(f"{sign}{letter}" for letter in LETTERS for sign in ("", "-"))
_MORE = (
    *(f"sinfo -h -n {WELL} -S '{key}' -o '%P %N %c'" for key in SORTS if key.strip("+-") not in "eO"),  # that is measured
    *(f"sinfo -h -n {WELL} -t {state} -o '%P %N %t'" for state in STATES),
    f"sinfo -n {WELL} -S foo",
    f"sinfo -n {WELL} -S '#P'",
    f"sinfo -n {WELL} -S '#-P,+t'",
    f"sinfo -n {WELL} -S ''",
    f"sinfo -n {WELL} -o '%all' -h | cut -d'|' -f1-3",
    f"sinfo -n {WELL} -o '%10P%5D'",
    f"sinfo -n {WELL} -o 'a%Pb%Dc'",
    f"sinfo -n {WELL} -o '%.3P %.1D'",
    f"sinfo -n {WELL} -o '%-10P|'",
    f"sinfo -n {WELL} -O partition:5,nodes:.3",
    f"sinfo -n {WELL} -O 'partition:|,nodes:-'",
    f"sinfo -n {WELL} -O partition:x,nodes",
    f"sinfo -n {WELL} -O ,partition",
    f"sinfo -n {WELL} -O PARTITION,Nodes",
    f"sinfo -n {WELL} -o %P -O nodes",
    f"sinfo -n {WELL} -O nodes -o %P",
    f"sinfo -n {WELL} --noconvert -o '%m %c'",
    f"sinfo -n {WELL} -N -l -h -o '%N %t'",
    f"sinfo -n {WELL} -s -o '%P %F'",
    f"sinfo -n {WELL} --hide",
    f"sinfo -n {WELL} --all",
    f"sinfo -n {WELL} --hide --all",
    f"sinfo -n {WELL} -F",
    f"sinfo -n {WELL} --local",
    f"sinfo -n {WELL} --federation -h",
    f"sinfo -n {WELL} -M all -h",
    f"sinfo -n {WELL} -b",
    f"sinfo -n {WELL} extra words",
    f"sinfo -n {WELL} -p ''",
    f"sinfo -n {WELL} -p cpu,nope",
    f"sinfo -n {WELL} -p ,cpu,",
    "sinfo -n ''",
    "sinfo -n n3,nope",
    "sinfo -n n[3-4],n5",
    "sinfo -n , -h",
    "sinfo -i 0",
    "sinfo -i -1",
    "sinfo --iterate=",
    "sinfo -M foo",
    "sinfo --no",
    "sinfo --n",
    "sinfo --help=x",
    "sinfo --nodes",
    "sinfo --autocomplete=no",
    "sinfo --autocomplete=--s",
    "sinfo --helpformat",
    "sinfo --helpFormat",
    "sinfo --helpstate",
    f"SINFO_FORMAT='%P %D' sinfo -n {WELL} -O nodes",
    f"SINFO_FORMAT='%P %D' sinfo -n {WELL} -o %N",
    f"SINFO_FORMAT='%P %D' sinfo -n {WELL} -s",
    f"SINFO_FORMAT='%P %D' sinfo -n {WELL} -N",
    f"SINFO_FORMAT='%P %D' sinfo -n {WELL} -l -h",
    f"SINFO_FORMAT= sinfo -n {WELL}",
    f"SINFO_ALL=1 sinfo -n {WELL} -h",
    f"SINFO_ALL= sinfo -n {WELL} -h",
    f"SINFO_SORT=N sinfo -n {WELL} -S P -h",
    f"SINFO_PARTITION=gpu sinfo -n {WELL} -p cpu -h",
    f"SLURM_CLUSTERS=reference sinfo -n {WELL} -h",
    f"SLURM_CLUSTERS=foo sinfo -n {WELL} -h",
    f"SCONTROL_FUTURE=1 sinfo -n {WELL} -h",
)

BUSY = (
    "sinfo -n n[1-2] -p gpu",
    "sinfo -p cpu",
    "sinfo -s",
    "sinfo -h -p gpu -n n1 -O gresused:30,allocmem,cpusstate,statecomplete",
    "sinfo -t mix -h",
    "sinfo -t alloc -h",
    "sinfo -h -o '%P %t %N %C %A'",
)

CASES: list[Case] = [
    *(Case(command) for command in IDLE),
    *_fields(),
    *(Case(command) for command in _MORE),
    Case(f"sinfo -n {WELL} -v -h", differs="what Slurm tells of its own switches is not told"),
    *(
        Case(command, ignore=HOST)
        for command in ("scontrol show node n1,n5", "scontrol -d -o show node n2", "scontrol show node n1,zz")
    ),
    Case("scontrol show config", ignore=CONFIG),
    *(
        Case(
            command,
            setup=(
                "sbatch -w n1 -n 2 --gpus=1 -t 5 -o /dev/null --wrap 'sleep 60'",
                "sbatch -w n5 -n 16 -t 5 -o /dev/null --wrap 'sleep 60'",
            ),
            until="[ \"$(sinfo -h -n n1,n5 -o '%t' | sort -u | tr '\\n' ' ')\" = 'alloc mix ' ]",
        )
        for command in BUSY
    ),
]
"""Cases with drained or down nodes are unit tests: a comparison must not take nodes of a shared reference away."""
