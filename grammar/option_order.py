"""The order in which sbatch, srun and salloc name the options that an ambiguous abbreviation may mean."""

from __future__ import annotations

ORDER: tuple[str, ...] = tuple(
    """
    accel-bind account acctg-freq array async autocomplete batch bcast bcast-exclude begin bell bb bbf
    cluster-constraint chdir cluster clusters comment compress consolidate-segments container container-id
    container-type context contiguous constraint core-spec cores-per-socket cpu-bind cpu_bind cpu-freq cpus-per-gpu
    cpus-per-task deadline debugger-test delay-boot dependency disable-status distribution epilog error exact exclude
    exclusive export export-file external external-launcher extra extra-node-info get-user-env gid gpu-bind gpu-freq
    gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help het-group hint hold ignore-pbs ignore-signals
    immediate input interactive jobid job-name kill-command kill-on-bad-exit kill-on-invalid-dep label licenses
    mail-type mail-user threads mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus mpi msg-timeout
    multi-prog network nice no-allocate no-bell no-kill no-requeue no-shell nodefile nodelist nodes ntasks
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres oom-kill-step open-mode output
    overcommit overlap oversubscribe pack-group parsable partition prefer preserve-env priority profile prolog propagate
    pty qos quiet quit-on-interrupt reboot relative requeue resources reservation resv-ports segment send-libs signal
    slurmd-debug sockets-per-node spread-job spread-segments stepmgr switches task-epilog task-prolog tasks-per-node
    test-only thread-spec threads-per-core time time-min tmp treewidth tres-bind tres-per-task uid unbuffered
    use-min-nodes verbose version usage wait wait-all-nodes wait-for-children wckey whole wrap x11
    """.split()  # noqa: SIM905
)
"""Long names of all three commands, as ``sbatch --=x`` lists them."""

PLACES: dict[str, int] = {name: place for place, name in enumerate(ORDER)}
"""Places in that order; options that the reference does not have come last."""
