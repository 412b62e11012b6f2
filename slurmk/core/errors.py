"""Slurm's error numbers and their messages (slurm_errno.h), which clients match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Errno(IntEnum):
    """Numbers of ``slurm_errno.h``; the name is Slurm's without its prefix. The REST API returns them as ``error_number``."""

    ERROR = -1
    INVALID_PARTITION_NAME = 2000
    DEFAULT_PARTITION_NOT_SET = 2001
    ACCESS_DENIED = 2002
    JOB_MISSING_REQUIRED_PARTITION_GROUP = 2003
    REQUESTED_NODES_NOT_IN_PARTITION = 2004
    TOO_MANY_REQUESTED_CPUS = 2005
    INVALID_NODE_COUNT = 2006
    MAX_JOB_COUNT = 2007
    JOB_MISSING_SIZE_SPECIFICATION = 2008
    JOB_SCRIPT_MISSING = 2009
    USER_ID_MISSING = 2010
    DUPLICATE_JOB_ID = 2011
    PATHNAME_TOO_LONG = 2012
    NOT_TOP_PRIORITY = 2013
    REQUESTED_NODE_CONFIG_UNAVAILABLE = 2014
    REQUESTED_PART_CONFIG_UNAVAILABLE = 2015
    NODES_BUSY = 2016
    INVALID_JOB_ID = 2017
    INVALID_NODE_NAME = 2018
    WRITING_TO_FILE = 2019
    TRANSITION_STATE_NO_UPDATE = 2020
    ALREADY_DONE = 2021
    INTERCONNECT_FAILURE = 2022
    BAD_DIST = 2023
    JOB_PENDING = 2024
    BAD_TASK_COUNT = 2025
    INVALID_JOB_CREDENTIAL = 2026
    IN_STANDBY_MODE = 2027
    INVALID_NODE_STATE = 2028
    INVALID_FEATURE = 2029
    ACTIVE_FEATURE_NOT_SUBSET = 2031
    FRAGMENTATION = 2035
    NOT_SUPPORTED = 2036
    DISABLED = 2037
    DEPENDENCY = 2038
    BATCH_ONLY = 2039
    LICENSES_UNAVAILABLE = 2040
    JOB_HELD = 2042
    INVALID_TASK_MEMORY = 2044
    INVALID_ACCOUNT = 2045
    INVALID_PARENT_ACCOUNT = 2046
    SAME_PARENT_ACCOUNT = 2047
    INVALID_LICENSES = 2048
    NEED_RESTART = 2049
    ACCOUNTING_POLICY = 2050
    INVALID_TIME_LIMIT = 2051
    RESERVATION_ACCESS = 2052
    RESERVATION_INVALID = 2053
    INVALID_TIME_VALUE = 2054
    RESERVATION_BUSY = 2055
    RESERVATION_NOT_USABLE = 2056
    INVALID_WCKEY = 2057
    RESERVATION_OVERLAP = 2058
    PORTS_BUSY = 2059
    PORTS_INVALID = 2060
    PROLOG_RUNNING = 2061
    NO_STEPS = 2062
    MISSING_WORK_DIR = 2063
    STEPS_DRAINED = 2064
    INVALID_QOS = 2066
    QOS_PREEMPTION_LOOP = 2067
    NODE_NOT_AVAIL = 2068
    INVALID_CPU_COUNT = 2069
    PARTITION_NOT_AVAIL = 2070
    CIRCULAR_DEPENDENCY = 2071
    INVALID_GRES = 2072
    JOB_NOT_PENDING = 2073
    QOS_THRES = 2074
    PARTITION_IN_USE = 2075
    STEP_LIMIT = 2076
    JOB_SUSPENDED = 2077
    CAN_NOT_START_IMMEDIATELY = 2078
    RESERVATION_EMPTY = 2080
    INVALID_ARRAY = 2081
    RESERVATION_NAME_DUP = 2082
    JOB_STARTED = 2083
    JOB_FINISHED = 2084
    JOB_NOT_RUNNING = 2085
    JOB_NOT_PENDING_NOR_RUNNING = 2086
    JOB_NOT_SUSPENDED = 2087
    JOB_NOT_FINISHED = 2088
    INTERNAL = 2090
    PRIO_RESET_FAIL = 2095
    CANNOT_MODIFY_CRON_JOB = 2096
    CANNOT_CANCEL_CRON_JOB = 2098
    INVALID_MCS_LABEL = 2099
    PARTITION_DOWN = 2101
    DUPLICATE_GRES = 2102
    RESERVATION_ALREADY_STARTED = 2104
    SUBMISSIONS_DISABLED = 2105
    NOT_HET_JOB = 2106
    NOT_HET_JOB_LEADER = 2107
    NOT_WHOLE_HET_JOB = 2108
    CORE_RESERVATION_UPDATE = 2109
    DUPLICATE_STEP_ID = 2110
    INVALID_CORE_COUNT = 2111
    X11_NOT_AVAIL = 2112
    GROUP_ID_MISSING = 2113
    BATCH_CONSTRAINT = 2114
    INVALID_TRES = 2115
    INVALID_TRES_BILLING_WEIGHTS = 2116
    INVALID_JOB_DEFAULTS = 2117
    RESERVATION_MAINT = 2118
    INVALID_GRES_TYPE = 2119
    REBOOT_IN_PROGRESS = 2120
    UNSUPPORTED_GRES = 2122
    INVALID_NICE = 2123
    INVALID_TIME_MIN_LIMIT = 2124
    DEFER = 2125
    ENVIRONMENT_MISSING = 2127
    RESERVATION_NOT_SKIPABLE = 2128
    RESERVATION_USER_GROUP = 2129
    PARTITION_ASSOCIATION = 2130
    BAD_THREAD_PER_CORE = 2132
    INVALID_PREFER = 2133
    INSUFFICIENT_GRES = 2134
    INVALID_CONTAINER_ID = 2135
    EMPTY_JOB_ID = 2136
    INVALID_JOB_ID_ZERO = 2137
    INVALID_JOB_ID_NEGATIVE = 2138
    INVALID_JOB_ID_TOO_LARGE = 2139
    INVALID_JOB_ID_NON_NUMERIC = 2140
    EMPTY_JOB_ARRAY_ID = 2141
    INVALID_JOB_ARRAY_ID_NEGATIVE = 2142
    INVALID_JOB_ARRAY_ID_TOO_LARGE = 2143
    INVALID_JOB_ARRAY_ID_NON_NUMERIC = 2144
    EMPTY_HET_JOB_COMPONENT = 2146
    INVALID_HET_JOB_COMPONENT_NEGATIVE = 2147
    INVALID_HET_JOB_COMPONENT_TOO_LARGE = 2148
    INVALID_HET_JOB_COMPONENT_NON_NUMERIC = 2149
    EMPTY_STEP_ID = 2150
    INVALID_STEP_ID_NEGATIVE = 2151
    INVALID_STEP_ID_TOO_LARGE = 2152
    INVALID_STEP_ID_NON_NUMERIC = 2153
    JOB_TIMEOUT_KILLED = 2160
    JOB_NODE_FAIL_KILLED = 2161
    EMPTY_LIST = 2162
    GROUP_ID_INVALID = 2163
    GROUP_ID_UNKNOWN = 2164
    USER_ID_INVALID = 2165
    USER_ID_UNKNOWN = 2166
    INVALID_ASSOCIATION = 2167
    NODE_ALREADY_EXISTS = 2168
    NODE_TABLE_FULL = 2169
    INVALID_RELATIVE_QOS = 2170
    INVALID_EXTRA = 2171
    JOB_SIGNAL_FAILED = 2172
    SIGNAL_JOBS_INVALID = 2173
    MAX_POWERED_NODES = 2177
    REQUESTED_TOPO_CONFIG_UNAVAILABLE = 2178
    PREEMPTION_REQUIRED = 2179
    INVALID_NODE_STATE_TRANSITION = 2180
    INVALID_JOB_STATE = 2181
    INVALID_SLUID = 2185
    EXTERN_ONLY = 2186
    INVALID_POWER_ACTION = 2187
    STEP_QUEUED = 2188
    INVALID_EXTERNAL_JOB = 2189
    FILE_UNREADABLE = 2190
    INVALID_ACCOUNTING_FREQUENCY = 4003


MESSAGES: dict[Errno, str] = {
    Errno.ERROR: "Unspecified error",
    Errno.INVALID_ACCOUNTING_FREQUENCY: "Invalid accounting frequency requested",
    Errno.INVALID_PARTITION_NAME: "Invalid partition name specified",
    Errno.DEFAULT_PARTITION_NOT_SET: "No partition specified or system default partition",
    Errno.ACCESS_DENIED: "Access/permission denied",
    Errno.JOB_MISSING_REQUIRED_PARTITION_GROUP: "User's group not permitted to use this partition",
    Errno.REQUESTED_NODES_NOT_IN_PARTITION: "Requested nodes not in this partition",
    Errno.TOO_MANY_REQUESTED_CPUS: "More processors requested than permitted",
    Errno.INVALID_NODE_COUNT: "Node count specification invalid",
    Errno.MAX_JOB_COUNT: "MaxJobCount limit reached",
    Errno.JOB_MISSING_SIZE_SPECIFICATION: "Job size specification needs to be provided",
    Errno.JOB_SCRIPT_MISSING: "Job script not specified",
    Errno.USER_ID_MISSING: "Invalid user id",
    Errno.DUPLICATE_JOB_ID: "Duplicate job id",
    Errno.PATHNAME_TOO_LONG: "Pathname of a file, directory or other parameter too long",
    Errno.NOT_TOP_PRIORITY: "Immediate execution impossible, insufficient priority",
    Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE: "Requested node configuration is not available",
    Errno.REQUESTED_PART_CONFIG_UNAVAILABLE: "Requested partition configuration not available now",
    Errno.NODES_BUSY: "Requested nodes are busy",
    Errno.INVALID_JOB_ID: "Invalid job id specified",
    Errno.INVALID_NODE_NAME: "Invalid node name specified",
    Errno.WRITING_TO_FILE: "I/O error writing script/environment to file",
    Errno.TRANSITION_STATE_NO_UPDATE: "Job can not be altered now, try again later",
    Errno.ALREADY_DONE: "Job/step already completing or completed",
    Errno.INTERCONNECT_FAILURE: "Error configuring interconnect",
    Errno.BAD_DIST: "Task distribution specification invalid",
    Errno.JOB_PENDING: "Job is pending execution",
    Errno.BAD_TASK_COUNT: "Task count specification invalid",
    Errno.INVALID_JOB_CREDENTIAL: "Error generating job credential",
    Errno.IN_STANDBY_MODE: "Slurm backup controller in standby mode",
    Errno.INVALID_NODE_STATE: "Invalid node state specified",
    Errno.INVALID_FEATURE: "Invalid feature specification",
    Errno.ACTIVE_FEATURE_NOT_SUBSET: "Active features not subset of available features",
    Errno.FRAGMENTATION: "Immediate execution impossible, resources too fragmented for allocation",
    Errno.NOT_SUPPORTED: "Requested operation not supported on this system",
    Errno.DISABLED: "Requested operation is presently disabled",
    Errno.DEPENDENCY: "Job dependency problem",
    Errno.BATCH_ONLY: "Only batch jobs are accepted or processed",
    Errno.LICENSES_UNAVAILABLE: "Licenses currently unavailable",
    Errno.JOB_HELD: "Job is in held state, pending scheduler release",
    Errno.INVALID_TASK_MEMORY: "Memory required by task is not available",
    Errno.INVALID_ACCOUNT: "Invalid account or account/partition combination specified",
    Errno.INVALID_PARENT_ACCOUNT: "Invalid parent account specified",
    Errno.SAME_PARENT_ACCOUNT: "Account already child of parent account specified",
    Errno.INVALID_LICENSES: "Invalid license specification",
    Errno.NEED_RESTART: "The node configuration changes that were made require restart of the slurmctld daemon to take effect",
    Errno.ACCOUNTING_POLICY: "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    Errno.INVALID_TIME_LIMIT: "Requested time limit is invalid (missing or exceeds some limit)",
    Errno.RESERVATION_ACCESS: "Access denied to requested reservation",
    Errno.RESERVATION_INVALID: "Requested reservation is invalid",
    Errno.INVALID_TIME_VALUE: "Invalid time specified",
    Errno.RESERVATION_BUSY: "Requested reservation is in use",
    Errno.RESERVATION_NOT_USABLE: "Requested reservation not usable now",
    Errno.INVALID_WCKEY: "Invalid wckey specification",
    Errno.RESERVATION_OVERLAP: "Requested reservation overlaps with another reservation",
    Errno.PORTS_BUSY: "Required ports are in use",
    Errno.PORTS_INVALID: "Requires more ports than can be reserved",
    Errno.PROLOG_RUNNING: "PrologSlurmctld is still running",
    Errno.NO_STEPS: "Job steps can not be run on this cluster",
    Errno.MISSING_WORK_DIR: "Job cannot be submitted without the current working directory specified.",
    Errno.STEPS_DRAINED: "No running or pending steps in the job",
    Errno.INVALID_QOS: "Invalid qos specification",
    Errno.QOS_PREEMPTION_LOOP: "QOS Preemption loop detected",
    Errno.NODE_NOT_AVAIL: "Required node not available (down, drained or reserved)",
    Errno.INVALID_CPU_COUNT: "CPU count specification invalid",
    Errno.PARTITION_NOT_AVAIL: "Required partition not available (inactive or drain)",
    Errno.CIRCULAR_DEPENDENCY: "Circular job dependency",
    Errno.INVALID_GRES: "Invalid generic resource (gres) specification",
    Errno.JOB_NOT_PENDING: "Job is no longer pending execution",
    Errno.QOS_THRES: "Requested account has breached requested QOS usage threshold",
    Errno.PARTITION_IN_USE: "Partition is in use",
    Errno.STEP_LIMIT: "Step limit reached for this job",
    Errno.JOB_SUSPENDED: "Job is current suspended, requested operation disabled",
    Errno.CAN_NOT_START_IMMEDIATELY: "Job can not start immediately",
    Errno.RESERVATION_EMPTY: "Reservation request lacks users, groups or accounts",
    Errno.INVALID_ARRAY: "Invalid job array specification",
    Errno.RESERVATION_NAME_DUP: "Duplicate reservation name",
    Errno.JOB_STARTED: "Job has already started",
    Errno.JOB_FINISHED: "Job has already finished",
    Errno.JOB_NOT_RUNNING: "Job is not running",
    Errno.JOB_NOT_PENDING_NOR_RUNNING: "Job is not pending nor running",
    Errno.JOB_NOT_SUSPENDED: "Job is not suspended",
    Errno.JOB_NOT_FINISHED: "Job is not finished",
    Errno.INTERNAL: "Slurm internal error, contact system administrator",
    Errno.PRIO_RESET_FAIL: "Changes to job priority are not persistent, change nice instead",
    Errno.CANNOT_MODIFY_CRON_JOB: "Cannot modify scrontab jobs through scontrol",
    Errno.CANNOT_CANCEL_CRON_JOB: "Cannot cancel scrontab jobs without --cron flag.",
    Errno.INVALID_MCS_LABEL: "Invalid mcs_label specified",
    Errno.PARTITION_DOWN: "Partition in DOWN state",
    Errno.DUPLICATE_GRES: "Duplicate generic resource (gres) specification",
    Errno.RESERVATION_ALREADY_STARTED: "Reservation already started",
    Errno.SUBMISSIONS_DISABLED: "System submissions disabled",
    Errno.NOT_HET_JOB: "Job not heterogeneous job",
    Errno.NOT_HET_JOB_LEADER: "Job not heterogeneous job leader",
    Errno.NOT_WHOLE_HET_JOB: "Operation not permitted on individual component of heterogeneous job",
    Errno.CORE_RESERVATION_UPDATE: "Core-based reservation can not be updated",
    Errno.DUPLICATE_STEP_ID: "Duplicate job step id",
    Errno.INVALID_CORE_COUNT: "Core count for reservation node list is not consistent!",
    Errno.X11_NOT_AVAIL: "X11 forwarding not available",
    Errno.GROUP_ID_MISSING: "Invalid group id",
    Errno.BATCH_CONSTRAINT: "Job --batch option is invalid or not a subset of --constraint",
    Errno.INVALID_TRES: "Invalid Trackable RESource (TRES) specification",
    Errno.INVALID_TRES_BILLING_WEIGHTS: "Invalid TRESBillingWeights specification",
    Errno.INVALID_JOB_DEFAULTS: "Invalid JobDefaults specification",
    Errno.RESERVATION_MAINT: "Job can not start due to maintenance reservation.",
    Errno.INVALID_GRES_TYPE: "Invalid GRES specification (with and without type identification)",
    Errno.REBOOT_IN_PROGRESS: "Reboot already in progress",
    Errno.UNSUPPORTED_GRES: "Requested GRES option unsupported by configured SelectType plugin",
    Errno.INVALID_NICE: "Invalid --nice value",
    Errno.INVALID_TIME_MIN_LIMIT: "Invalid time-min specification (exceeds job's time or other limits)",
    Errno.DEFER: "Immediate execution impossible. Individual job submission scheduling attempts deferred",
    Errno.ENVIRONMENT_MISSING: "Environment is missing in job",
    Errno.RESERVATION_NOT_SKIPABLE: "Reservation given is not skipable, try deleting instead",
    Errno.RESERVATION_USER_GROUP: "Reservations can't have users and groups specified, only one or the other",
    Errno.PARTITION_ASSOCIATION: "Multiple partition job request not supported when a partition is set in the association",
    Errno.BAD_THREAD_PER_CORE: "Cannot request more threads per core than the job allocation",
    Errno.INVALID_PREFER: "Invalid preferred feature specification",
    Errno.INSUFFICIENT_GRES: "Insufficient GRES available in allocation",
    Errno.INVALID_CONTAINER_ID: "Invalid container id specified",
    Errno.EMPTY_JOB_ID: "JobID must not be an empty string",
    Errno.INVALID_JOB_ID_ZERO: "JobID can not be zero",
    Errno.INVALID_JOB_ID_NEGATIVE: "JobID can not be a negative number",
    Errno.INVALID_JOB_ID_TOO_LARGE: "JobID larger than acceptable range",
    Errno.INVALID_JOB_ID_NON_NUMERIC: "JobID includes unexpected non-numeric characters",
    Errno.EMPTY_JOB_ARRAY_ID: "Job Array ID must not be an empty string",
    Errno.INVALID_JOB_ARRAY_ID_NEGATIVE: "Job Array ID can not be a negative number",
    Errno.INVALID_JOB_ARRAY_ID_TOO_LARGE: "Job Array ID larger than acceptable range",
    Errno.INVALID_JOB_ARRAY_ID_NON_NUMERIC: "Job Array ID includes unexpected non-numeric characters",
    Errno.EMPTY_HET_JOB_COMPONENT: "HetJob component must not be an empty string",
    Errno.INVALID_HET_JOB_COMPONENT_NEGATIVE: "HetJob component can not be a negative number",
    Errno.INVALID_HET_JOB_COMPONENT_TOO_LARGE: "HetJob component larger than acceptable range",
    Errno.INVALID_HET_JOB_COMPONENT_NON_NUMERIC: "Unknown error 2149",
    Errno.EMPTY_STEP_ID: "StepID must not be an empty string",
    Errno.INVALID_STEP_ID_NEGATIVE: "StepID can not be a negative number",
    Errno.INVALID_STEP_ID_TOO_LARGE: "StepID larger than acceptable range",
    Errno.INVALID_STEP_ID_NON_NUMERIC: "StepID includes unexpected non-numeric characters",
    Errno.JOB_TIMEOUT_KILLED: "Job killed due hitting max wall clock limit",
    Errno.JOB_NODE_FAIL_KILLED: "Job killed due node failure",
    Errno.EMPTY_LIST: "Empty list",
    Errno.GROUP_ID_INVALID: "Invalid group ID",
    Errno.GROUP_ID_UNKNOWN: "Unable to resolve group ID to group name",
    Errno.USER_ID_INVALID: "Invalid user ID",
    Errno.USER_ID_UNKNOWN: "Unable to resolve user ID to user name",
    Errno.INVALID_ASSOCIATION: "Invalid or unknown association",
    Errno.NODE_ALREADY_EXISTS: "Node already exists in the node table",
    Errno.NODE_TABLE_FULL: "Unable to add node, node table is full",
    Errno.INVALID_RELATIVE_QOS: "Invalid QOS specification, relative QOS can only be used in a single partition per cluster.",
    Errno.INVALID_EXTRA: "Invalid extra constraints specification",
    Errno.JOB_SIGNAL_FAILED: "Cannot signal job",
    Errno.SIGNAL_JOBS_INVALID: "Invalid signal jobs request, at least one job id or filter is required.",
    Errno.MAX_POWERED_NODES: "Max powered up nodes reached",
    Errno.REQUESTED_TOPO_CONFIG_UNAVAILABLE: "Requested topology configuration is not available",
    Errno.PREEMPTION_REQUIRED: "Preemption is required but is disabled on this system",
    Errno.INVALID_NODE_STATE_TRANSITION: "Invalid node state transition",
    Errno.INVALID_JOB_STATE: "Invalid job state",
    Errno.INVALID_SLUID: "SLUID is invalid",
    Errno.EXTERN_ONLY: "Requested operation requires extern step",
    Errno.INVALID_POWER_ACTION: "Invalid power action",
    Errno.STEP_QUEUED: "Step queued as pending",
    Errno.INVALID_EXTERNAL_JOB: "Invalid configuration for external job",
    Errno.FILE_UNREADABLE: "Unable to load file for reading",
}
"""What ``slurm_strerror`` says."""


@dataclass(frozen=True, slots=True)
class SlurmError(Exception):
    """A refusal: Slurm's number, and a message when Slurm says more than the number's own."""

    errno: Errno
    message: str = ""

    def __str__(self) -> str:
        return self.message or MESSAGES[self.errno]
