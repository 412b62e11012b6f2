"""stepd: the program that stands for one allocated node of one job, and srun's part inside a job.

Standard library only, Python 3.8 or newer, because it runs in whatever image a job brings. ``node`` keeps the job alive
on its node and talks to the controller; ``manager`` (on the job's first node) makes steps; a ``keeper`` is the process
that starts the tasks of one step on one node and ends them whole; ``srun`` is what the user's srun becomes.
"""
