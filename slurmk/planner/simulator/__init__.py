"""Replays of recorded workloads: which job would wait how long under which policy."""
