"""Every word of SchedulerParameters and PreemptParameters (slurm.conf(5)), and what slurmk does with it.

A word that acts changes plans or what is accepted. The others are read and shown; their rows say why there is nothing for
them to change here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One word. ``why_not`` is why it changes nothing, "" for one that acts."""

    name: str
    why_not: str = ""

    @property
    def acts(self) -> bool:
        return not self.why_not


_NO_LOCKS = "plans are made beside everything else, of a snapshot, and hold no lock that had to be given up"
_WHOLE_QUEUE = "every plan looks at the whole queue, or at as much of it as bf_max_job_test and its like say"
_EXACT = "ends and starts are kept to the second, however many there are"
_NO_BURST_BUFFERS = "there are no burst buffers"
_NO_BOOTS = "nodes are not booted or powered for jobs"
_NO_DELAY = "a submission is answered before it is planned, and many share a plan, so putting it off saves nothing"

SCHEDULER_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("allow_zero_lic"),
    Parameter("assoc_limit_stop"),
    Parameter("batch_sched_delay", _NO_DELAY),
    Parameter("bb_array_stage_cnt", _NO_BURST_BUFFERS),
    Parameter("bf_allow_magnetic_slot", "always so: a job that may use a magnetic reservation is promised a start too"),
    Parameter("bf_busy_nodes"),
    Parameter("bf_continue", "always so: a plan is made to its end, whatever changes meanwhile"),
    Parameter("bf_hetjob_immediate"),
    Parameter("bf_hetjob_prio"),
    Parameter("bf_interval"),
    Parameter("bf_job_part_count_reserve"),
    Parameter("bf_licenses", "always so: licences are planned like nodes"),
    Parameter("bf_max_job_array_resv"),
    Parameter("bf_max_job_assoc"),
    Parameter("bf_max_job_part"),
    Parameter("bf_max_job_start"),
    Parameter("bf_max_job_test"),
    Parameter("bf_max_job_user"),
    Parameter("bf_max_job_user_part"),
    Parameter("bf_max_time", _NO_LOCKS),
    Parameter("bf_min_age_reserve"),
    Parameter("bf_min_prio_reserve"),
    Parameter("bf_node_space_size", _EXACT),
    Parameter("bf_one_resv_per_job", "always so: a job in several partitions is promised one start, the earliest"),
    Parameter("bf_resolution", _EXACT),
    Parameter("bf_running_job_reserve", "always so: what runs is on the plan"),
    Parameter("bf_topopt_enable", "a hook for experiments with Slurm's own source; placement prefers few switches already"),
    Parameter("bf_topopt_iterations", "a hook for experiments with Slurm's own source; placement prefers few switches already"),
    Parameter("bf_window"),
    Parameter("bf_window_linear", _EXACT),
    Parameter("bf_yield_interval", _NO_LOCKS),
    Parameter("bf_yield_rpc_cnt", _NO_LOCKS),
    Parameter("bf_yield_sleep", _NO_LOCKS),
    Parameter("build_queue_timeout", _NO_LOCKS),
    Parameter("correspond_after_task_cnt", "every element of an array is looked at when what it corresponds to ends"),
    Parameter("default_queue_depth", _WHOLE_QUEUE),
    Parameter("defer"),
    Parameter("defer_batch", _NO_DELAY),
    Parameter("delay_boot", _NO_BOOTS),
    Parameter("disable_hetjob_steps"),
    Parameter("disable_job_shrink"),
    Parameter("enable_hetjob_steps", "always so, unless disable_hetjob_steps is there too"),
    Parameter("enable_user_top"),
    Parameter("extra_constraints", "nodes have no Extra data that --extra could be compared with"),
    Parameter("ignore_constraint_validation"),
    Parameter("Ignore_NUMA", "sockets are those that slurm.conf or the node's kubelet names; nothing is counted anew"),
    Parameter("ignore_prefer_validation"),
    Parameter("kill_invalid_depend"),
    Parameter("max_array_tasks"),
    Parameter("max_rpc_cnt", _NO_LOCKS),
    Parameter("max_sched_time", _NO_LOCKS),
    Parameter("max_script_size"),
    Parameter("max_submit_line_size"),
    Parameter("max_switch_wait"),
    Parameter("no_backup_scheduling", "a controller that takes over is the controller; none takes over for a part of the work"),
    Parameter("nohold_on_prolog_fail"),
    Parameter("pack_serial_at_end"),
    Parameter("partition_job_depth", _WHOLE_QUEUE),
    Parameter("preempt_youngest_first"),
    Parameter(
        "reduce_completing_frag", "nodes of a completing job are planned as free a moment later; nothing else is kept back"
    ),
    Parameter("requeue_delay"),
    Parameter("requeue_on_resume_failure", _NO_BOOTS),
    Parameter("salloc_wait_nodes", "salloc returns when the first node has said that it is there; none is still booting"),
    Parameter("sbatch_wait_nodes", "a script starts when its node is there, and steps wait for the nodes that they use"),
    Parameter("sched_interval", _NO_DELAY),
    Parameter("sched_max_job_start", "all that a plan starts is started; see bf_max_job_start"),
    Parameter("sched_min_interval", _NO_DELAY),
    Parameter("slurmk_order"),
    Parameter("slurmk_use_gres_nodes"),
    Parameter("spec_cores_first", "no cores are kept from jobs"),
    Parameter("step_retry_count", "steps are tried again as soon as another step of their job ends"),
    Parameter("step_retry_time", "steps are tried again as soon as another step of their job ends"),
    Parameter("time_min_as_soft_limit"),
    Parameter("whole_hetjob"),
)
"""The words of SchedulerParameters; two are slurmk's own."""

_FEWEST = "always so: of those that suffice, as few and as cheap ones as possible give way"

PREEMPT_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("min_exempt_priority"),
    Parameter("reclaim_licenses"),
    Parameter("reorder_count", _FEWEST),
    Parameter("send_user_signal"),
    Parameter("strict_order", _FEWEST),
    Parameter("suspend_grace_time"),
    Parameter("youngest_first"),
)
"""The words of PreemptParameters."""
