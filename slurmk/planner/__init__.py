"""Snapshot in, plan out: a pure function of values, with numpy as its tool."""
