#!/bin/bash
# The main job, end to end, on an embedded cluster of four pretended nodes: what `make demo` runs.
# Every line that begins with "$" is a command as you would type it.
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
slurmk=$(realpath "$(command -v "${SLURMK:-slurmk}")")
directory=$(mktemp -d "${TMPDIR:-/tmp}/slurmk-demo.XXXXXX")
trap '"$slurmk" down --dir "$directory" --jobs >/dev/null 2>&1 || true; rm -rf "$directory"' EXIT

bold='' plain=''
[ -t 1 ] && bold=$'\033[1m' plain=$'\033[0m'
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() { printf '\n$ %s\n' "${*@Q}" | sed "s/'\([A-Za-z0-9_.,:=%/@+-]*\)'/\1/g"; "$@"; }

say "1. A cluster out of this machine: one controller, four pretended nodes"
printf '\n$ %s\n' "slurmk up --detach --nodes 4"
"$slurmk" up --detach --nodes 4 --dir "$directory"
eval "$("$slurmk" env --dir "$directory")"
cd "$directory"
run sinfo

say "2. A script of 2 nodes x 2 tasks, submitted with sbatch"
sed 's/^/    /' "$examples/hello.sh"
run sbatch "$examples/hello.sh"
job=$(squeue --noheader --format=%i --name=hello)

say "3. Three more that do not fit at once: each is told when it starts"
run sbatch --job-name=wide --nodes=4 --exclusive --time=3:00 --wrap "sleep 1"
run sbatch --job-name=small --ntasks=1 --time=1:00 --wrap "sleep 1"
run sbatch --job-name=later --nodes=4 --exclusive --time=10:00 --wrap "sleep 1"
run squeue
run squeue --start
while [ -n "$(squeue --noheader --jobs="$job" --states=PENDING,RUNNING,COMPLETING 2>/dev/null)" ]; do sleep 0.2; done

say "4. The output of all its tasks"
run cat "hello-$job.out"

say "5. What accounting recorded"
run sacct --jobs="$job" --format=JobID,JobName,Partition,AllocCPUS,State,ExitCode,Elapsed,NodeList

cat <<'TEXT'

That was it. To go on with a cluster of your own:

    make shell                       a shell in which sbatch, squeue, sacct ... are on PATH
    sbatch docs/examples/hello.sh    and your own scripts, as they are
    slurmk status; slurmk down       how it is; the end of it
TEXT
