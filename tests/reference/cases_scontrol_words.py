"""scontrol's other words with odd arguments, its options on them, and commands from standard input."""

from __future__ import annotations

from sides import Case

_COMMANDS = r"""
scontrol completing
scontrol completing x
scontrol comp
scontrol c
scontrol co
scontrol ping
scontrol ping x
scontrol pi
scontrol pin
scontrol ver
scontrol verbose
scontrol verb
scontrol verbose x
scontrol hold
scontrol hold foo
scontrol hold 999999
scontrol hold 999998,999999
scontrol hold jobid=999999
scontrol hold job=999999
scontrol hold name=nosuch
scontrol hold jobname=nosuch
scontrol hold ""
scontrol holdu 999999
scontrol uhold 999999
scontrol uhol 999999
scontrol release
scontrol rel 999999
scontrol re 999999
scontrol release foo
scontrol release name=nosuch
scontrol requeue
scontrol requeue foo
scontrol requeue 999999
scontrol requeue jobid=999999
scontrol requeue incomplete 999999
scontrol requeue state=specialexit 999999
scontrol requeuehold
scontrol requeuehold foo
scontrol requeuehold 999999
scontrol requeuehold state=specialexit 999999
scontrol requeuehold state=foo 999999
scontrol requeuehold State=SpecialExit
scontrol requeuehold 999999 state=specialexit
scontrol requeuehold incomplete 999999
scontrol requeueh 999999
scontrol suspend
scontrol suspend foo
scontrol suspend 999999
scontrol suspend jobid=999999
scontrol suspend 999999,999998
scontrol sus 999999
scontrol su 999999
scontrol s 999999
scontrol resume
scontrol resume foo
scontrol res 999999
scontrol resume 999999
scontrol notify
scontrol notify 1
scontrol notify foo bar
scontrol notify 999999 bar
scontrol notify 0 bar
scontrol notify -1 bar
scontrol top
scontrol top foo
scontrol top 999999
scontrol top 999999,999998
scontrol top jobid=999999
scontrol top 999998 999999
scontrol wait_job
scontrol wait_job foo
scontrol wait_job 999999
scontrol wait_job 1 2
scontrol wait 999999
scontrol wa 999999
scontrol write
scontrol write foo
scontrol write batch_script
scontrol write batch_script foo
scontrol write batch_script 999999
scontrol write batch_script 1 2 3
scontrol write config /nosuch/x
scontrol writ
scontrol show
scontrol show foo
scontrol show foo bar
scontrol show foo bar baz
scontrol show hostlist n1,n2,n3
scontrol show hostlist n3,n1,n2
scontrol show hostlistsorted n3,n1,n2
scontrol show hostlist n[1
scontrol show hostlist ""
scontrol show hostlist /nosuch
scontrol show hostlist a b
scontrol show hostl n1,n2
scontrol show hostn n[1-3]
scontrol show hostnames n[1-3]
scontrol show hostnames n[1-3],x
scontrol show hostnames
scontrol show hostnames ""
SLURM_NODELIST=n[3-4] scontrol show hostnames
SLURM_JOB_NODELIST=n[3-4] scontrol show hostnames
scontrol show hostnames n[1
scontrol show hostnames n1 n2
scontrol show hostnames=n[1-2]
scontrol show dwstat
scontrol show dwstat foo
scontrol show bbstat
scontrol show bbstat foo bar
scontrol show burstbuffer
scontrol show burst
scontrol show federation
scontrol show fed foo
scontrol show topoconf
scontrol show topoconf x
scontrol show topology
scontrol show topology node=n1
scontrol show topology nosuch
scontrol show topology switch=leaf1
scontrol show topology unit=leaf1
scontrol show topology node=nosuch
scontrol show topology leaf1
scontrol show daemons
scontrol show daemons x
scontrol show slurmd
scontrol show slurmd n1
scontrol show aliases
scontrol show aliases n1
scontrol show aliases localhost
scontrol show aliases nosuch
scontrol show assoc_mgr foo
scontrol show assoc_mgr flags=foo
scontrol show assoc_mgr flags
scontrol show assoc_mgr users=nosuch flags=users
scontrol show frontend
scontrol show blocks
scontrol show layouts
scontrol show powercap
scontrol show cache foo
scontrol show licenses nosuch
scontrol show lic
scontrol show licenses matlab
scontrol show licenses=matlab
scontrol -o show lic
scontrol show config x y
scontrol show configuration x | head -3
scontrol show node nosuch
scontrol show node n1,nosuch | grep -E 'NodeName|not'
scontrol show node=n1 | grep NodeName
scontrol show nodes n1 n2
scontrol show node n[1
scontrol show no n1 | grep NodeName
scontrol show n n1 | grep NodeName
scontrol -Q show node nosuch
scontrol show partition nosuch
scontrol show part=debug | head -1
scontrol show p debug
scontrol show pa debug | head -1
scontrol -Q show part nosuch
scontrol show partition debug gpu
scontrol show reservation
scontrol show reservation nosuch
scontrol show res=nosuch
scontrol show r
scontrol show step
scontrol show step foo
scontrol show st
scontrol show s
scontrol show jobs foo
scontrol show jobid 999999
scontrol show jobid=999999
scontrol show job 999999,999998
scontrol show job 999999_1
scontrol show job 999999+1
scontrol show job 999999.0
scontrol -Q show job 999999
scontrol show jobs x y
scontrol listpids
scontrol listpids 999999
scontrol listpids 999999.0
scontrol listpids foo
scontrol listpids 1 2 3
scontrol listjobs
scontrol liststeps
scontrol listjobs x y
scontrol pidinfo
scontrol pidinfo foo
scontrol pidinfo 1
scontrol pidinfo 1 2
scontrol pid 1
scontrol getaddrs
scontrol getaddrs nosuch
scontrol getaddrs n1 n2
scontrol getent
scontrol errnumstr
scontrol errnumstr 2000
scontrol errnumstr foo
scontrol errnumstr 1 2
scontrol errnostr 1
scontrol errnumstr 99999
scontrol errnumstr 0
scontrol err 2001
scontrol setdebug
scontrol setdebug foo
scontrol setdebug 3 4
scontrol setdebug 99
scontrol setdebug info
scontrol setd info
scontrol setdebugflags
scontrol setdebugflags foo
scontrol setdebugflags +foo
scontrol setdebugflags +backfill
scontrol setdebugflags -backfill
scontrol setdebugflags +backfill -gres
scontrol schedloglevel
scontrol schedloglevel foo
scontrol schedloglevel 2
scontrol sch 0
scontrol fsdampeningfactor
scontrol fsdampeningfactor foo
scontrol fsdampeningfactor 1
scontrol fsd 0
scontrol fsdampeningfactor 1 2
scontrol reboot
scontrol reboot asap
scontrol reboot n1
scontrol reboot asap n1 nextstate=resume reason=x
scontrol reboot nextstate=foo n1
scontrol reboot foo=bar n1
scontrol reboot n1 n2
scontrol reboot nosuch
scontrol cancel_reboot
scontrol cancel_reboot n1
scontrol cancel_reboot nosuch
scontrol can n1
scontrol power
scontrol power up
scontrol power up n1
scontrol power down n1
scontrol power down asap n1
scontrol power foo n1
scontrol power down n1 reason=x
scontrol cluster
scontrol cluster nosuch
scontrol cluster reference
scontrol clu
scontrol takeover 1
scontrol takeover foo
scontrol takeover 1 2
scontrol token foo
scontrol token lifespan=foo
scontrol token lifespan=
scontrol abort x y
scontrol details
scontrol details x
scontrol script
scontrol all
scontrol al
scontrol a
scontrol hide
scontrol hi
scontrol h
scontrol oneliner
scontrol oneliner x
scontrol o
scontrol quiet
scontrol quiet x
scontrol qui
scontrol quit
scontrol quit x
scontrol exit
scontrol exit x
scontrol e
scontrol \\q
scontrol help x | head -1
scontrol he | head -1
scontrol !!
scontrol ""
scontrol foo
scontrol shutdown foo
scontrol shutdown x y
scontrol reconfigure x y
scontrol checkpoint x
scontrol create_node
scontrol update_all
scontrol --foo
scontrol -Z
scontrol --al show part debug | head -1
scontrol --h | head -1
scontrol -o
scontrol --uid=alice show part debug | head -1
scontrol -u
scontrol -u nosuch show part debug
scontrol --uid=nosuch show part debug
scontrol -M reference show part debug | head -1
scontrol -M nosuch show part debug | head -1
scontrol --local show part debug | head -1
scontrol --sibling show part debug | head -1
scontrol --federation show part debug | head -1
scontrol --future show node n1 | head -1
scontrol -F show node n1 | head -1
scontrol -v show job 999999
scontrol -v show lic
scontrol -v ping
scontrol --json ping | head -3
scontrol --json foo
scontrol --json=list ping
scontrol --json show hostnames n1
scontrol --json show topology
scontrol --json show lic | head -2
scontrol --json hold 999999
scontrol -ooo show lic
scontrol -Q foo
scontrol -Q hold 999999
scontrol -Q update jobid=999999 comment=x
scontrol -Q update partition=nosuch state=up
scontrol -Q update node=nosuch weight=3
scontrol -Q create partition=debug
scontrol -Q delete partition=nosuch
scontrol -Q update foo=bar
scontrol -Q delete foo=bar
scontrol -Q show foo
""".strip().splitlines()

_TYPED = (
    "show lic\nquit\n",
    "!!\nquit\n",
    "foo\nshow lic\nexit\nfoo\n",
    "oneliner\nshow lic\n",
    "\n\nquit\n",
    "",
    "quit",
    "show hostnames n[1-2]\nverbose\nquiet\nfoo\nverbose\nfoo\nquit\n",
    "all\nhide\ndetails\nshow foo\nquit x\n",
    'show "lic"\nquit\n',
    "show   lic  matlab\n  quit\n",
    "hold 'a b'\nquit\n",
    'hold "a\nquit\n',
    "exit x\n",
    "update partition=nosuch state=up\nquit\n",
    "#x\nquit\n",
    "show lic; quit\nquit\n",
    "\\q\nfoo\nquit\n",
)

CASES = [
    *(Case(command) for command in _COMMANDS),
    *(Case("scontrol", stdin=text, title=f"typed {text!r}") for text in _TYPED),
    *(Case("scontrol -Q", stdin=text, title=f"typed quietly {text!r}") for text in _TYPED[:3]),
]
