"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("same", derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("new", print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
