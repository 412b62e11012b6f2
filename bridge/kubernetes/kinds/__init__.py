"""The workload kinds: which objects a job becomes. One module and one template a kind (``bridge/kubernetes/templates``)."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.kubernetes.kinds.native import NativePods
from bridge.kubernetes.kinds.plan import Renderer
from bridge.kubernetes.kinds.pods import PlainPods
from bridge.kubernetes.settings import Kind

RENDERERS: Mapping[Kind, Renderer] = {
    Kind.PODS: PlainPods(),
    Kind.NATIVE: NativePods(),
}
"""What renders each kind."""
