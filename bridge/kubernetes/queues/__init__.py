"""Queues of Kueue and Volcano made from partitions, accounts and QOS, and what jobs bear to be admitted by them.

``kueue`` and ``volcano`` say, purely, which objects there should be; ``apply`` compares them with the cluster and makes it so.
The planner is told what those queues leave by ``bridge.kubernetes.quotas``.
"""
