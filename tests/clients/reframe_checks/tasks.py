"""Two checks: ranks over two nodes, and a task on every node with GPUs that is idle then, which ReFrame asks for."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, sanity_function


@rfm.simple_test
class Ranks(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["builtin"]
    executable = "bash"
    executable_opts = ["-c", "'echo rank $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME'"]
    num_tasks = 4
    num_tasks_per_node = 2
    time_limit = "2m"

    @sanity_function
    def all_came(self):
        return sn.assert_eq(sn.count(sn.findall(r"rank \d of 4 on n\d", self.stdout)), 4)


@rfm.simple_test
class EveryNode(rfm.RunOnlyRegressionTest):
    valid_systems = ["*:debug"]
    valid_prog_environs = ["builtin"]
    executable = "hostname"
    num_tasks = 0
    num_tasks_per_node = 1
    time_limit = "2m"

    @run_after("setup")
    def only_gpus(self):
        self.job.options = ["--constraint=a100"]

    @sanity_function
    def all_came(self):
        return sn.assert_eq(sn.count(sn.findall(r"\S+", self.stdout)), self.job.num_tasks)
