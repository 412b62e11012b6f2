"""sprio, sdiag, sstat, sattach, sbcast and scontrol's smaller commands: forms, refusals and what they print."""

from __future__ import annotations

from sides import Case

HELD = ("sbatch -A phys -H --wrap true",)

WAITING = (
    "sbatch -A phys -p cpu -w n8 --exclusive -o /dev/null --wrap 'sleep 300'",
    "until squeue -h -j {0} -o %t | grep -q R; do sleep 0.2; done",
    "sbatch -A phys -n 2 -w n8 --nice=5 -o /dev/null --wrap true",
    "sbatch -A phys -p cpu -w n8 -a 1-3 -o /dev/null --wrap true",
    "sbatch -A phys -p debug,cpu -w n8 -o /dev/null --wrap true",
    "sbatch -A phys -H --wrap true",
    "sbatch -A phys -b now+1hour --wrap true",
)
SEEN = "sprio -h -j {2} -o %i | grep -q . && sprio -h -j {3} -o %i | grep -q ."
ALL = "{1},{2},{3},{4},{5}"

_SPRIO_ALONE = (
    "sprio",
    "sprio -l",
    "sprio -w",
    "sprio -n",
    "sprio -w -n",
    "sprio -w -l",
    "sprio -l -n",
    "sprio -h",
    "sprio -h -w",
    "sprio -u root,alice",
    "sprio -p gpu",
    "sprio -p nosuch",
    "sprio -j 999999",
    "sprio -j foo",
    "sprio -j 1,foo",
    "sprio -j ''",
    "sprio --foo",
    "sprio --format",
    "sprio --fo",
    "sprio -o '%i %Y %A %F %J %P %Q %N %T %B %S %r %u %n %o %c %a %f %j %p %q %t %b %s'",
    "sprio -o '%.7i|%10u|%-5Y|%x'",
    "sprio -o '%.30i|%3r|%.3u'",
    "sprio -o '%i%'",
    "sprio -o ''",
    "sprio -o 'text'",
    "sprio -w -o '%i %Y %A'",
    "sprio -w -o '%.10i|%5F|%.9f|%N|%T|%u|%r'",
    "sprio -S Z",
    "sprio -S -y",
    "sprio --helpformat",
    "sprio -M nosuch",
    "sprio -M reference",
    "sprio --federation",
    "sprio --local --sibling",
)

_SPRIO_WAITING = (
    f"sprio -h -j {ALL} -o '%i|%J|%P|%Q|%N|%S|%B|%r|%u|%n|%o|%c|%T'",
    f"sprio -h -j {ALL} -o '%.12i|%10r|%.10j|%p|%q|%b'",
    f"sprio -h -S -i -j {ALL} -o '%i %r'",
    f"sprio -h -S r,-i -j {ALL} -o '%i %r'",
    f"sprio -h -S J -j {ALL} -o '%i %J'",
    f"sprio -h -S -J,i -j {ALL} -o '%i %J'",
    f"sprio -h -p cpu -j {ALL} -o '%i %r'",
    f"sprio -h -p gpu -j {ALL} -o '%i %r'",
    f"sprio -h -u root -j {ALL} -o '%i'",
    f"sprio -h -u alice -j {ALL} -o '%i'",
    "sprio -h -j {2}_2 -o '%i %r'",
    "sprio -h -j {0} -o '%i'",
    "sprio -j {4}",
    "sprio -j {5}",
    "sprio -w -j {1}",
    "scontrol top {1} && squeue -h -j {1} -o '%i %y'",
    "scontrol top {0}",
    "scontrol top {4}",
    "scontrol top 999999",
    "scontrol top abc",
)

_ALONE = (
    "sdiag --foo",
    "sdiag -M nosuch",
    "sdiag -M",
    "sdiag --sort",
    "sdiag | head -n 1",
    "sdiag | sed -n '5,11p'",
    "sdiag | grep -E '^[A-Z].*:$'",
    "sdiag | grep -E '^.(Hit|Timeout|System|Blocked)'",
    "sdiag | tail -n 2",
    "sstat",
    "sstat -j 999999 -o jobid",
    "sstat -j foo",
    "sstat -j 1,foo",
    "sstat -e",
    "sstat --helpformat",
    "sstat -o nosuch -j 1",
    "sstat -o jobid,nosuch -j 1",
    "sstat --foo",
    "sstat -j",
    "sstat -n -j 999999",
    "sstat -p -j 999999",
    "sstat -P -j 999999",
    "sstat -j 999999 -o jobid%20,maxrss%4,pids",
    "sstat -i -j 999999",
    "sstat -P -i -j 999999",
    "sattach",
    "sattach a b",
    "sattach foo",
    "sattach 5",
    "sattach 999999.0",
    "sattach 5.batch",
    "sattach --foo",
    "sattach -u",
    "sbcast",
    "sbcast a",
    "sbcast a b c",
    "sbcast a b",
    "sbcast -j foo a b",
    "sbcast -j 999999 a b",
    "sbcast --foo",
    "sbcast --usage",
    "sbcast -s",
    "scontrol reboot",
    "scontrol reboot n1",
    "scontrol reboot ASAP n1",
    "scontrol reboot nosuch",
    "scontrol cancel_reboot n1",
    "scontrol cancel_reboot",
    "scontrol cancel_reboot nosuch",
    "scontrol token foo=1",
    "scontrol token lifespan=x",
    "scontrol abort",
    "scontrol setdebug",
    "scontrol setdebug 99",
    "scontrol setdebug nosuch",
    "scontrol setdebugflags",
    "scontrol schedloglevel",
    "scontrol schedloglevel x",
    "scontrol fsdampeningfactor",
    "scontrol fsdampeningfactor 0",
    "scontrol fsdampeningfactor x",
    "scontrol takeover 1",
    "scontrol power",
    "scontrol power up",
    "scontrol power up n1",
    "scontrol power down nosuch",
    "scontrol cluster",
    "scontrol show assoc_mgr foo",
    "scontrol show assoc_mgr foo=bar",
    "scontrol show assoc_mgr flags=foo",
    "scontrol show assoc_mgr accounts=nosuch flags=assoc",
    "scontrol show assoc_mgr users=nosuch flags=users",
    "scontrol show assoc_mgr qos=nosuch flags=qos",
    "scontrol show slurmd",
    "scontrol show slurmd n1",
    "scontrol show topoconf",
    "scontrol cluster nosuch",
    "scontrol listpids foo",
    "scontrol listpids 1 2 3",
    "scontrol listpids 999999 n1",
    "scontrol listpids 999999.0 n1",
    "scontrol pidinfo 1",
    "scontrol pidinfo x",
    "scontrol pidinfo",
    "scontrol notify",
    "scontrol notify 1",
    "scontrol notify abc hi",
)

STEPPED = (
    "sbatch -A phys -n 2 -w n1 -o /dev/null --wrap 'srun -n2 --overlap sleep 99 & sleep 1; srun -n1 --overlap sleep 98 & wait'",
    "sbatch -A phys -H --wrap true",
)
STEPS_RUN = "[ $(squeue -h -s -j {0} -o %i | wc -l) = 3 ]"

_STEPPED = (
    "sstat -n -j {0} -o jobid,ntasks,nodelist",
    "sstat -n -a -j {0} -o jobid,ntasks,nodelist | sort",
    "sstat -P -a -j {0} -o jobid,alloctres,reqcpufreq,consumedenergy | sort",
    "sstat -n -j {0}.0,{0}.1 -o jobid%30",
    "sstat -j {0}.batch -o jobid,ntasks",
    "sstat -p -j {0}.0 -o jobid,ntasks,mincpunode,maxrssnode",
    "sstat {0} -n -o jobid",
    "sstat -j {0}.7 -o jobid",
    "sstat -j {1} -o jobid",
    "sstat -n -j {0}.0 -o MinCPU,AveCPU,MaxPages,AvePages",
    "sattach --layout {0}.0",
    "sattach --layout {0}.1",
    "sattach --layout {0}.7",
    "sattach --layout {0}.batch",
    "sattach --layout {0}",
    "scontrol show step {0}.0 | grep -vE 'SrunHost'",
    "scontrol -o show step {0}.1 | sed 's/SrunHost.*//'",
    "scontrol suspend {0} && squeue -h -j {0} -o '%T %t' && scontrol resume {0} && squeue -h -j {0} -o %T",
    "scontrol suspend {1}",
    "scontrol resume {1}",
    "scontrol suspend {0} {1}; scontrol resume {0} {1}",
    "scontrol notify {1} text",
    "sbcast -j {1} a b",
    "scontrol requeue {0}.0",
)

_STRANGER = (
    "sstat -n -j {0}.0 -o jobid",
    "scontrol notify {0} text",
    "scontrol suspend {0}",
    "scontrol top {1}",
    "sdiag -r",
    "scontrol setdebug info",
)

SEND = """#!/bin/bash
echo data >sent; chmod 640 sent
try() { echo "$ $*"; "$@"; echo "exit $?"; }
try sbcast sent one; ls -l one | cut -c1-10
try sbcast sent one
try sbcast -f sent one
try sbcast -p sent two
[ $(stat -c %Y sent) = $(stat -c %Y two) ] && echo times
try sbcast nosuch three
try sbcast sent /nonexistent/three
try sbcast /tmp four
try sbcast -C sent five
try sbcast --size=1k sent six
try sbcast --size=x sent seven
try sbcast -F4 -t 3 sent eight
try sbcast -j $SLURM_JOB_ID sent nine
try sbcast -j 999999 sent ten
try sbcast --force --send-libs=no sent eleven
SBCAST_FORCE= try sbcast sent one
cat one two five six eight nine eleven
echo done >done
"""

CASES = [
    *(Case(command) for command in _SPRIO_ALONE),
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=WAITING, until=SEEN) for command in _SPRIO_WAITING),
    *(Case(command, setup=STEPPED, until=STEPS_RUN) for command in _STEPPED),
    *(Case(command, setup=STEPPED, until=STEPS_RUN, user="alice") for command in _STRANGER),
    Case(
        "cat send.out",
        setup=(f"cat >send.sh <<'END'\n{SEND}END", "sbatch -A phys -w n1 -o send.out send.sh"),
        until="[ -e done ]",
        title="sbcast in a job",
    ),
    Case(
        "cat noticed.out",
        setup=(
            "salloc -A phys -n 1 -w n1 -J noticed bash -c 'echo begun; sleep 4' >noticed.out 2>&1 &"
            " until squeue -h -n noticed -o %t | grep -q R; do sleep 0.2; done; sleep 1;"
            " scontrol notify $(squeue -h -n noticed -o %A) several words",
        ),
        until="grep -q Relinquishing noticed.out",
        ignore=(r"(?m)^salloc: (?:Pending|job ).*\n", r"\d+"),
        title="scontrol notify a salloc",
    ),
    Case(
        "sattach {0}.0 | sort; cat attached.code",
        setup=(
            "sbatch -A phys -n 2 -w n1 -o /dev/null --wrap"
            " 'srun -n 2 bash -c \"echo first \\$SLURM_PROCID; sleep 6; echo last; exit 2\"'",
        ),
        until="squeue -h -s -j {0} -o %i | grep -q '\\.0$'",
        ignore=(r"attached.code",),
        title="sattach from the beginning to the end",
    ),
]
