"""Why a request to the API server did not do what was asked: it said no, or it did not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class KubernetesError(Exception):
    """Any of the below; ``str()`` is one line for a person."""


class ApiError(KubernetesError):
    """The API server refused. Its ``Status`` object says why: ``reason`` is a word for programs, ``message`` a sentence."""

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message or reason or f"HTTP status {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}

    @property
    def not_found(self) -> bool:
        """There is no such object, or no such kind of object."""
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        """An object of that name is there already."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """The object was changed by another in between, or another field manager owns a field."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def forbidden(self) -> bool:
        """Not allowed: RBAC, an admission plugin (quota, pod security) or a webhook."""
        return self.status == 403

    @property
    def invalid(self) -> bool:
        """The object is wrong: 422 from validation, 400 for what is no object of that kind."""
        return self.status in (400, 422)

    @property
    def gone(self) -> bool:
        """The version that a watch or a list wanted to go on from is too old."""
        return self.status == 410


class Unavailable(KubernetesError):
    """No answer, or only 429 and 5xx, for as long as a request may take. What was asked may have been done, or not."""


class AccessError(Unavailable):
    """There is no way to the cluster: kubeconfig, credentials or certificates are wrong. A person has to act."""
