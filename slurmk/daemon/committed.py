"""The state as the store has it, so that memory can go back to it when a commit fails.

Every value is frozen, so this costs one reference a job. It follows the saves of each commit that succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from slurmk.core.effects import (
    Effect,
    ForgetJob,
    ForgetNode,
    ForgetPartition,
    ForgetReservation,
    SaveCounter,
    SaveJob,
    SaveNode,
    SavePartition,
    SaveReservation,
    SaveResize,
    SaveStep,
)
from slurmk.model.job import Job, Step
from slurmk.model.node import Node, Partition
from slurmk.model.reservation import Reservation

SAVES = (
    SaveJob,
    SaveStep,
    SaveResize,
    ForgetJob,
    SaveNode,
    ForgetNode,
    SavePartition,
    ForgetPartition,
    SaveReservation,
    ForgetReservation,
    SaveCounter,
)
"""The effects that the store carries out."""


class Committed:
    """What a restart would find."""

    def __init__(
        self,
        jobs: Iterable[Job] = (),
        nodes: Iterable[Node] = (),
        partitions: Iterable[Partition] = (),
        next_job_id: int = 1,
        reservations: Iterable[Reservation] = (),
        last_reservation: int = 0,
        longest_wait: int = 0,
    ) -> None:
        self.jobs = {job.job_id: job for job in jobs}
        self.nodes = {node.name: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.next_job_id = next_job_id
        self.reservations = {each.name: each for each in reservations}
        self.last_reservation = last_reservation
        self.longest_wait = longest_wait

    def follow(self, effects: Iterable[Effect]) -> None:
        """Take over what a successful commit saved."""
        for effect in effects:
            match effect:
                case SaveJob(job=job):
                    self.jobs[job.job_id] = job
                    self.longest_wait = max(self.longest_wait, job.start_time - max(job.submit_time, job.eligible_time))
                case SaveStep(step=step):
                    self._follow_step(step)
                case ForgetJob(job_id=job_id):
                    self.jobs.pop(job_id, None)
                case SaveNode(node=node):
                    self.nodes[node.name] = node
                case ForgetNode(name=name):
                    self.nodes.pop(name, None)
                case ForgetPartition(name=name):
                    self.partitions.pop(name, None)
                case SavePartition(partition=partition):
                    self.partitions[partition.name] = partition
                case SaveReservation(reservation=reservation):
                    self.reservations[reservation.name] = reservation
                    self.last_reservation = max(self.last_reservation, reservation.number)
                case ForgetReservation(name=name):
                    self.reservations.pop(name, None)
                case SaveCounter(next_job_id=next_job_id):
                    self.next_job_id = next_job_id
                case _:
                    pass

    def _follow_step(self, step: Step) -> None:
        """Steps that are over are the store's alone; a restart does not read them either."""
        job = self.jobs.get(step.job_id)
        if job is not None:
            others = tuple(other for other in job.steps if other.step_id != step.step_id)
            self.jobs[job.job_id] = replace(job, steps=others if step.end_time else (*others, step))
