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
