"""What the options of sbatch, srun and salloc mean, each in a few words: for ``--help``, man pages and shell completion.

The word before the first ``|`` stands for the value; options without one have none.
"""

from __future__ import annotations

import re

_TEXT = """
accel-bind KINDS | bind tasks to the devices that are near them
account ACCOUNT | charge the job to this account
acctg-freq SECONDS | how often usage is sampled, of tasks or by kind
array INDICES | submit an array: one element for each index, %N of them at a time
async | start the step and come back at once
autocomplete PREFIX | print the options that begin so
batch FEATURES | features of the node that runs the script
bb TEXT | what is asked of a burst buffer
bbf FILE | the same, from a file
bcast [PATH] | copy the program to the nodes first
bcast-exclude PATHS | libraries below these are not copied
begin time | start no earlier than this
bell | ring the terminal's bell when the nodes are there
chdir DIRECTORY | where the script or command runs
cluster-constraint FEATURES | features of the cluster
clusters NAMES | the cluster to ask
comment TEXT | a remark that goes with the job
compress [KIND] | compress what --bcast sends
consolidate-segments | put segments next to each other
constraint FEATURES | features that nodes must have: a&b, a|b, [a|b], a*2
container IMAGE | run in this container
container-entrypoint | run the image's entry point
container-env NAMES | variables that the image may set
container-id ID | the container's name
container-image IMAGE | as --container, in pyxis' words
container-mount-home | mount the home directory
container-mounts MOUNTS | what is mounted into the container
container-name NAME | keep the container under this name
container-readonly | the container cannot be written
container-remap-root | be root inside of the container
container-save FILE | keep the container in a file
container-type TYPE | the kind of container
container-workdir DIRECTORY | where to run inside of the container
container-writable | the container can be written
context CONTEXT | SELinux context
contiguous | nodes that lie next to each other
core-spec COUNT | cores of each node that are kept for the system
cores-per-socket COUNT | nodes with at least so many cores in a socket
cpu-bind BINDING | which CPUs a task may use
cpu-freq FREQUENCY | frequency of the CPUs
cpus-per-gpu COUNT | CPUs for each GPU
cpus-per-task COUNT | CPUs for each task
deadline TIME | remove the job when it cannot be over by then
debugger-test | for tests of debuggers
delay-boot TIME | wait this long for nodes that need no reboot
dependency CONDITIONS | wait for other jobs: afterok:ID, afterany:ID, singleton
disable-status | do not show the tasks' state at an interrupt
distribution WORDS | how tasks are dealt to nodes and sockets: block, cyclic, plane=N, arbitrary
epilog PROGRAM | run this, where srun runs, after the step
error FILE | where standard error goes; a pattern
exact | give the step just the CPUs that it asks for
exclude NODES | nodes not to use
exclusive [WORD] | whole nodes; or nodes shared with own jobs alone (user), or of one label (mcs, topo)
export WORDS | which variables go with the job: ALL, NIL, NONE, names, NAME=value
export-file FILE | variables from a file
external | a job whose processes something else starts
external-launcher | start a launcher that is not Slurm's
extra TEXT | a text that goes with the job
extra-node-info S:C:T | at least so many sockets, cores and threads in a node
get-user-env | start from the user's login environment
gid GROUP | submit for this group (root)
gpu-bind BINDING | which GPUs a task may use
gpu-freq FREQUENCY | frequency of the GPUs
gpus n | GPUs of the whole job, with or without a type
gpus-per-node COUNT | GPUs in each node
gpus-per-socket COUNT | GPUs in each socket
gpus-per-task COUNT | GPUs for each task
gres LIST | generic resources in each node: NAME[:TYPE][:COUNT]
gres-flags WORDS | how generic resources go with CPUs and tasks
help | this text
het-group NUMBERS | components of a het job that the step runs in
hint WORDS | what the program is bound by: compute_bound, memory_bound, nomultithread
hold | hold the job until it is released
ignore-pbs | pass over #PBS and #BSUB lines
ignore-signals SIGNALS | signals that srun does not send on
immediate [SECONDS] | give up unless the nodes are there within this time
input FILE | where standard input comes from; a pattern
interactive | the step of an interactive shell
job-name NAME | name of the job
jobid ID | run the step in this job
kill-command [SIGNAL] | signal for the command when the job ends
kill-on-bad-exit [0|1] | end the step when a task fails
kill-on-invalid-dep WORD | end the job when its dependency can never hold: yes or no
label | each line of output begins with the task's number
licenses LIST | licences: NAME[:COUNT]
mail-type EVENTS | events that a mail is sent about: BEGIN, END, FAIL, ALL ...
mail-user USER | who gets the mail
mcs-label LABEL | security label of the job
mem SIZE | memory in each node; 0 is all of it
mem-bind BINDING | which memory a task may use
mem-per-cpu SIZE | memory for each CPU
mem-per-gpu SIZE | memory for each GPU
mem-update MARGIN@DELAY | give back memory that is not used
mincpus n | CPUs in each node at least
mpi TYPE | how tasks learn of each other
msg-timeout SECONDS | how long messages may take
multi-prog | a file says which task runs which program
network TEXT | what is asked of the network
nice [NUMBER] | lower the priority by this
no-allocate | run on nodes without an allocation
no-bell | do not ring the terminal's bell
no-container-entrypoint | do not run the image's entry point
no-container-mount-home | do not mount the home directory
no-container-remap-root | do not be root inside of the container
no-kill [off] | go on when a node fails
no-requeue | do not start the job again when a node fails
no-shell | make the allocation and run nothing
nodefile FILE | names of wanted nodes from a file
nodelist NODES | these nodes, and more if that is not enough
nodes N | how many nodes: N, MIN-MAX, or a list of sizes
ntasks COUNT | how many tasks
ntasks-per-core COUNT | tasks for each core at most
ntasks-per-gpu COUNT | tasks for each GPU
ntasks-per-node COUNT | tasks in each node
ntasks-per-socket COUNT | tasks in each socket at most
ntasks-per-tres COUNT | as --ntasks-per-gpu
oom-kill-step [0|1] | end the whole step when one task has no memory left
open-mode MODE | append to output files, or truncate them
output FILE | where standard output goes; a pattern
overcommit | more tasks than CPUs
overlap | share the job's CPUs with other steps
oversubscribe | share nodes with other jobs
parsable | print the job's id alone
partition NAMES | partitions that the job may run in
prefer FEATURES | features that nodes should have
preserve-env | leave the numbers of nodes and tasks of the environment alone
priority NUMBER | priority of the job, or TOP (operators)
profile KINDS | gather profiles
prolog PROGRAM | run this, where srun runs, before the step
propagate [LIMITS] | resource limits that the job takes over: ALL, NONE or names
pty | run the first task on a terminal
qos qos | quality of service
quiet | tell less
quit-on-interrupt | the first interrupt ends the step
reboot | reboot the nodes first
relative NUMBER | begin at this node of the allocation
requeue [expedite] | start the job again when a node fails
reservation NAMES | run in this reservation
resources LIST | hierarchical resources
resv-ports [COUNT] | ports that are kept for the step
segment SIZE | nodes are wanted in groups of this size
send-libs [yes|no] | --bcast also copies libraries
signal [B:]SIGNAL[@SECONDS] | send this signal so long before the time limit
slurmd-debug LEVEL | how much the node tells
sockets-per-node COUNT | nodes with at least so many sockets
spread-job | over as many nodes as possible
spread-segments | put segments far from each other
stepmgr | the job's steps are managed on its nodes
switches COUNT[@TIME] | at most so many switches between the nodes, and how long to wait for that
task-epilog PROGRAM | each task runs this at its end
task-prolog PROGRAM | each task runs this first
tasks-per-node COUNT | as --ntasks-per-node
test-only | tell when the job would start; submit nothing
thread-spec COUNT | threads of each node that are kept for the system
threads COUNT | threads that srun starts tasks with
threads-per-core COUNT | threads of each core that are used
time TIME | time limit: minutes, H:M:S, D-H, UNLIMITED
time-min TIME | take a time limit as short as this if the job then starts earlier
tmp SIZE | temporary disk in each node
treewidth NUMBER | how messages fan out
tres-bind BINDING | which trackable resources a task may use
tres-per-task LIST | trackable resources for each task: cpu=2,gres/gpu:1
uid USER | submit for this user (root)
unbuffered | pass output on at once
usage | the options in short
use-min-nodes | rather few nodes, of a range
verbose | tell more
version | the version
wait SECONDS | end the step so long after its first task has ended
wait-all-nodes 0|1 | start when all nodes are ready
wait-for-children | wait for what tasks leave behind
wckey KEY | workload characterisation key
whole | give the step all of the job's CPUs
wrap COMMAND | submit this command instead of a script
x11 [WORD] | forward X11
"""

_LINES = [line.partition(" | ") for line in _TEXT.strip().splitlines()]

MEANINGS: dict[str, str] = {head.partition(" ")[0]: meaning for head, _, meaning in _LINES}
"""Option by its usual long name to what it means."""

VALUES: dict[str, str] = {
    head.partition(" ")[0]: re.sub(r"^\[([^][]*)\]$", r"\1", head.partition(" ")[2]) for head, _, _ in _LINES if " " in head
}
"""Option to the word for its value."""

WAIT_OF_SBATCH = "come back when the job is over, with its exit code"
"""``--wait`` of sbatch, which is another option than srun's."""


def meaning_of(command: str, name: str) -> str:
    """What an option of a command means; "" where the table does not say."""
    return WAIT_OF_SBATCH if (command, name) == ("sbatch", "wait") else MEANINGS.get(name, "")
