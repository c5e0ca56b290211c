#!/bin/sh
# torchtitan: no line of code, one environment variable. Say what to run after the script's name:
#
#     sh examples/torchtitan.sh torchrun --nproc-per-node 8 -m torchtitan.train --job.config_file ...
#
# torchtitan calls the factories that are named, and only those, so that its own is named as well. The run
# directory is torchtitan's dump folder (train-ledger watch outputs), unless TRAIN_LEDGER_RUN says another.
# It takes a torchtitan with the structured logger, which is on its main branch; of an older one
# train-ledger reads what it prints.
set -eu
own=torchtitan.observability.structured_logger.jsonl_handler.register_jsonl_handler
TITAN_STRUCT_LOGGER_HANDLERS="$own,train_ledger.signals.integrations.torchtitan.register"
export TITAN_STRUCT_LOGGER_HANDLERS
exec "$@"
