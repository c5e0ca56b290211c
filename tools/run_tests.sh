#!/bin/sh
# Are all tests green? Usage: run_tests.sh BIN, the folder of the environment's programs.
#
# First what is quick, beside nothing but itself; then real jobs, two at a time. A real job is judged by
# seconds, and another one beside it takes some of them: what failed there is run once more, one after the
# other. Both outcomes stand in the output, and what fails both times is a failure.
set -u
bin=$1

run() {
    "$bin/python" -m pytest --cov --cov-append --cov-report= "$@" tests
}

rm -f .coverage .coverage.*
outcome=0
run -n 2 --dist worksteal -m "not slow" || outcome=1
run -n 2 --dist worksteal -m slow || {
    echo "--- once more, alone: the real jobs that failed beside others ---"
    run --last-failed --last-failed-no-failures none -m slow || outcome=1
}
"$bin/coverage" report --skip-covered || outcome=1
exit $outcome
