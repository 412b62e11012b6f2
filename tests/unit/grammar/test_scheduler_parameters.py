"""The table of SchedulerParameters and PreemptParameters: complete, and true of what acts."""

from __future__ import annotations

from pathlib import Path

from grammar.scheduler_parameters import PREEMPT_PARAMETERS, SCHEDULER_PARAMETERS

ROOT = Path(__file__).parents[3]

OF_SLURM = """
allow_zero_lic assoc_limit_stop batch_sched_delay bb_array_stage_cnt bf_allow_magnetic_slot bf_busy_nodes bf_continue
bf_hetjob_immediate bf_hetjob_prio bf_interval bf_job_part_count_reserve bf_licenses bf_max_job_array_resv bf_max_job_assoc
bf_max_job_part bf_max_job_start bf_max_job_test bf_max_job_user bf_max_job_user_part bf_max_time bf_min_age_reserve
bf_min_prio_reserve bf_node_space_size bf_one_resv_per_job bf_resolution bf_running_job_reserve bf_topopt_enable
bf_topopt_iterations bf_window bf_window_linear bf_yield_interval bf_yield_rpc_cnt bf_yield_sleep build_queue_timeout
correspond_after_task_cnt default_queue_depth defer defer_batch delay_boot disable_hetjob_steps disable_job_shrink
enable_hetjob_steps enable_user_top extra_constraints ignore_constraint_validation Ignore_NUMA ignore_prefer_validation
max_array_tasks max_rpc_cnt max_sched_time max_script_size max_submit_line_size max_switch_wait no_backup_scheduling
nohold_on_prolog_fail pack_serial_at_end partition_job_depth reduce_completing_frag requeue_delay requeue_on_resume_failure
salloc_wait_nodes sbatch_wait_nodes sched_interval sched_max_job_start sched_min_interval spec_cores_first step_retry_count
step_retry_time time_min_as_soft_limit whole_hetjob
"""
"""The words that slurm.conf(5) of Slurm 26.05 has."""


def test_every_word_of_slurm_has_a_row() -> None:
    assert {parameter.name for parameter in SCHEDULER_PARAMETERS} >= set(OF_SLURM.split())
    names = "min_exempt_priority reclaim_licenses reorder_count send_user_signal strict_order suspend_grace_time youngest_first"
    assert [parameter.name for parameter in PREEMPT_PARAMETERS] == names.split()


def test_rows_are_in_order_and_each_is_there_once() -> None:
    for table in (SCHEDULER_PARAMETERS, PREEMPT_PARAMETERS):
        names = [parameter.name.lower() for parameter in table]
        assert names == sorted(set(names))


def sources() -> str:
    """The code that could act on a word."""
    folders = ("core", "planner", "model", "commands", "daemon")
    files = (path for folder in folders for path in (ROOT / "slurmk" / folder).rglob("*.py"))
    return "\n".join(path.read_text() for path in files)


def test_those_that_act_are_in_the_code() -> None:
    text = sources()
    for parameter in (*SCHEDULER_PARAMETERS, *PREEMPT_PARAMETERS):
        assert not parameter.acts or f'"{parameter.name}"' in text, parameter.name
