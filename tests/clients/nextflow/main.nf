// Tasks with sizes, a job array, a failure that is ignored, and a kill after which the task is tried again.

process sized {
    cpus 2
    memory '200 MB'
    clusterOptions '--comment=nextflow'

    input:
    val number

    output:
    path 'told.txt'

    script:
    "echo sized $number \$SLURM_CPUS_PER_TASK > told.txt"
}

process elements {
    array 3

    input:
    val letter

    output:
    stdout

    script:
    "echo element $letter \${SLURM_ARRAY_TASK_ID:+of an array}"
}

process failing {
    errorStrategy 'ignore'

    input:
    path told

    script:
    "cat $told; exit 3"
}

process killed {
    errorStrategy { task.exitStatus in 137..143 ? 'retry' : 'terminate' }
    maxRetries 1

    output:
    stdout

    script:
    "if [ $task.attempt = 1 ]; then kill -9 \$\$; fi; echo tried again"
}

workflow {
    sized(Channel.of(1, 2))
    failing(sized.out.first())
    elements(Channel.of('a', 'b', 'c'))
    killed()
    sized.out.map { it.text }.mix(elements.out, killed.out).map { it.trim() }.view { "told: $it" }
}
