"""Jobs that are requeued while they end."""

from __future__ import annotations

import pytest
from core_story import ALICE, Cluster

from accounting.rows import job_row
from slurmk.core.errors import Errno
from slurmk.core.events import JobSelection, Requeue
from slurmk.model.requested import Requested
from slurmk.model.states import JobFlag, JobState, Reason


@pytest.mark.parametrize(("exit_code", "ended"), [(0, JobState.COMPLETED), (3 << 8, JobState.FAILED)])
def test_a_job_is_requeued_while_its_epilogs_run(cluster: Cluster, exit_code: int, ended: JobState) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.ended(job_id, exit_code)
    assert cluster.job(job_id).state is ended
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),)))
    ending = cluster.job(job_id)
    assert (ending.state, ending.restarts) == (JobState.PENDING, 0)
    assert ending.flags & JobFlag.COMPLETING
    assert job_row(ending, 1, Requested(0, 0, 0), 0, 0, "").state == ended
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),)))
    assert cluster.refusal() is Errno.TRANSITION_STATE_NO_UPDATE
    cluster.released(job_id)
    waiting = cluster.job(job_id)
    assert (waiting.state, waiting.restarts, waiting.reason) == (JobState.PENDING, 1, Reason.BEGIN_TIME)
    assert waiting.flags is JobFlag.NONE


def test_a_job_is_requeued_held_while_its_epilogs_run(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.ended(job_id)
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),), hold=True))
    cluster.released(job_id)
    waiting = cluster.job(job_id)
    assert (waiting.priority, waiting.reason) == (0, Reason.JOB_HELD_USER)
