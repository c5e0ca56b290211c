#!/bin/sh
# Made by train-ledger, for slurm.conf: Prolog=/etc/slurm/train-ledger-prolog.sh
# (and PrologFlags=Alloc, so that it runs before the first step). Starts the sidecar of a job's run on this
# node, as the job's user. A job says which run it writes by
#   #SBATCH --comment=train-ledger=/runs/r42
# Nothing here ever fails the job: whatever goes wrong is one line in the system's log. The sidecar listens on
# @address@: on loopback unless `train-ledger deploy --targets` named other hosts.
PATH=/opt/train-ledger/bin:/usr/local/bin:/usr/bin:/bin
export PATH
set -f

tell() {
    logger -t train-ledger-prolog -- "job ${SLURM_JOB_ID:-?}: $*" 2>/dev/null || :
}

start() {
    case "${SLURM_JOB_ID:-}" in '' | *[!0-9]*) return 0 ;; esac
    case "${SLURM_JOB_UID:-}" in '' | 0 | *[!0-9]*) return 0 ;; esac
    run=
    for word in ${SLURM_JOB_COMMENT:-}; do
        case "$word" in train-ledger=/*) run=${word#train-ledger=} ;; esac
    done
    [ -n "$run" ] || return 0
    case "$run" in
    *[!A-Za-z0-9/._+@=-]*)
        tell "a run directory may have letters, digits and /._+@=- in its name: its ranks are not exported"
        return 0
        ;;
    esac
    if ! command -v systemd-run >/dev/null || ! command -v train-ledger >/dev/null; then
        tell "no systemd-run or no train-ledger on this node: its ranks are not exported"
        return 0
    fi
    # Rank 0 may make the folder after this; the job's user makes it here, so that the sidecar has one to follow.
    if ! timeout 10 setpriv --reuid "$SLURM_JOB_UID" --regid "${SLURM_JOB_GID:-$SLURM_JOB_UID}" --init-groups \
        mkdir -p -- "$run" 2>/dev/null; then
        tell "$run cannot be made or written by the job's user: its ranks are not exported"
        return 0
    fi
    # A unit of its own: what a prolog leaves behind in its own group Slurm ends with it. CAP_SYSLOG is for the
    # kernel log; without it no XID of this node is known but by DCGM, which keeps the last code alone.
    timeout 10 systemd-run --quiet --collect --unit="train-ledger-job-$SLURM_JOB_ID" \
        --uid="$SLURM_JOB_UID" --gid="${SLURM_JOB_GID:-$SLURM_JOB_UID}" \
        --property=AmbientCapabilities=CAP_SYSLOG --property=CapabilityBoundingSet=CAP_SYSLOG \
        --property=NoNewPrivileges=true --property=ProtectSystem=strict --property="ReadWritePaths=$run" \
        --property=PrivateTmp=true --property=Restart=on-failure --property=RestartSec=5 --property=MemoryMax=1G \
        --property=CPUQuota=50% --nice=10 --setenv=PATH="$PATH" \
        --property="RuntimeDirectory=train-ledger-job-$SLURM_JOB_ID" --property=RuntimeDirectoryPreserve=restart \
        train-ledger export "$run" --host @address@ --port @port@ --record-hardware \
        --state "/run/train-ledger-job-$SLURM_JOB_ID/export.memory" \
        >/dev/null 2>&1 || tell "the sidecar of $run did not start: its ranks are not exported"
}

start
exit 0
