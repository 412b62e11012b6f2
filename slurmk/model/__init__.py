"""Plain values of the domain: jobs, steps, nodes, partitions, TRES, states and the site's configuration.

Nothing here does I/O or holds a clock. The core changes these values, the planner reads arrays made from them, the
store keeps them, and the commands print them.
"""
