"""The workload kinds: which objects a job becomes. One small module a project, one template an object."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.kubernetes.kinds.coscheduling import CoschedulingPods
from bridge.kubernetes.kinds.jobset import JobSets
from bridge.kubernetes.kinds.native import NativeJobs, NativePods
from bridge.kubernetes.kinds.plan import Renderer
from bridge.kubernetes.kinds.pods import PlainPods
from bridge.kubernetes.kinds.trainjob import TrainJobs
from bridge.kubernetes.kinds.volcano import VolcanoJobs, VolcanoPods
from bridge.kubernetes.settings import Kind

RENDERERS: Mapping[Kind, Renderer] = {
    Kind.PODS: PlainPods(),
    Kind.NATIVE: NativePods(),
    Kind.NATIVE_JOB: NativeJobs(),
    Kind.JOBSET: JobSets(),
    Kind.TRAINJOB: TrainJobs(),
    Kind.VOLCANO: VolcanoPods(),
    Kind.VOLCANO_JOB: VolcanoJobs(),
    Kind.COSCHEDULING: CoschedulingPods(),
}
"""What renders each kind."""
