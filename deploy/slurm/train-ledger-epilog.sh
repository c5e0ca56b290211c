#!/bin/sh
# Made by train-ledger, for slurm.conf: Epilog=/etc/slurm/train-ledger-epilog.sh
# Ends the sidecar that the prolog started. Never fails: a node is not drained for it.
PATH=/usr/local/bin:/usr/bin:/bin
export PATH

case "${SLURM_JOB_ID:-}" in
'' | *[!0-9]*) ;;
*)
    unit="train-ledger-job-$SLURM_JOB_ID.service"
    if timeout 5 systemctl is-active --quiet "$unit" 2>/dev/null; then
        # The last lines of the ranks are to be scraped once more.
        sleep 6
        timeout 20 systemctl stop "$unit" >/dev/null 2>&1 || :
    fi
    ;;
esac
exit 0
