"""What launchers, schedulers, kernels and runtimes write around a training program's own lines."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from train_ledger.facts import Event, Fact, Fault
from train_ledger.sources import FactReader
from train_ledger.sources.formats import PySpyJson
from train_ledger.sources.formats.system.error_file import ErrorFile


def facts_of(lines: str | Iterable[str], name: str = "train.log") -> list[Fact]:
    reader = FactReader(name, written_t=1_775_000_000.0)
    text = lines if isinstance(lines, str) else "\n".join(lines)
    return [*reader.feed(text.encode()), *reader.end()]


def fault_of(lines: str | Iterable[str]) -> Fault:
    (fault,) = facts_of(lines)
    assert isinstance(fault, Fault)
    return fault


# -- the watchdog and the recorder


WORK = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=51, OpType=ALLREDUCE, "
    "Timeout(ms)=1800000) ran for {ran} milliseconds before timing out."
)


@pytest.mark.parametrize(
    ("line", "rank", "in_group", "group"),
    [
        ("[E ProcessGroupNCCL.cpp:700] [Rank 3] " + WORK.format(ran=1800111), None, 3, None),
        ("[rank6]:[E ProcessGroupNCCL.cpp:560] [Rank 6] " + WORK.format(ran=1800111), 6, 6, None),
        ("[rank6]:[E709 04:05:06.1 ProcessGroupNCCL.cpp:605] [Rank 2] " + WORK.format(ran=1), 6, 2, None),
        ("[rank6]:[E ProcessGroupNCCL.cpp:1530] [PG 4 Rank 2] Timeout at NCCL work: 51, x", 6, 2, "4"),
        (
            "n1: [rank6]:[E1109 04:05:06.2 ProcessGroupNCCL.cpp:17] [PG ID 3 PG GUID 17(tp) Rank 2] "
            "Exception "
            "(either an error or timeout) detected by watchdog at work: 51, last enqueued NCCL work: 52.",
            6,
            2,
            "17",
        ),
        (
            "[rank6]:[E214 04:05:06.3 ProcessGroupNCCL.cpp:2240] [PG ID 5 PG GUID 41 Rank 0]  failure "
            "detected "
            "by watchdog at work sequence id: 51 PG status: last enqueued work: 52, last completed work: 50",
            6,
            0,
            "41",
        ),
    ],
)
def test_the_global_rank_is_not_the_one_within_the_group(line, rank, in_group, group) -> None:
    fault = fault_of(line)
    assert (fault.fault, fault.rank) == ("watchdog_timeout", rank)
    details = fault.details
    assert (details["rank_in_group"], details.get("group"), details["seq"]) == (in_group, group, 51)


def test_a_timeout_glued_to_a_progress_bar_is_found_however_long_it_ran() -> None:
    bar = "Epoch 1:  12%|#2        | 512/4096 [10:00<1:10:00,  1.17s/it, loss=2.1]"
    fault = fault_of(f"{bar}[E ProcessGroupNCCL.cpp:455] [Rank 0] {WORK.format(ran=25_624_887)}")
    assert (fault.details["ran_ms"], fault.details["timeout_ms"]) == (25_624_887, 1_800_000)


def test_how_a_dump_goes_on_is_told_by_events() -> None:
    front = "[rank2]:[E328 00:21:12.1 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
    facts = facts_of(
        [
            f"{front}Received a dump signal due to a collective timeout from  rank 0 and we will try",
            f"{front}ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1",
            f"{front}Finished writing Flight Recorder debug info to /tmp/dumps/rank_2",
        ]
    )
    assert [it.name for it in facts if isinstance(it, Event)] == ["dump_asked", "dump_begun", "dump_done"]
    assert [it.rank for it in facts] == [2, 2, 2]
    assert facts[-1].details["file"] == "/tmp/dumps/rank_2"


# -- the launcher

TABLE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-02-03_04:05:07
  host      : node-07
  rank      : 8 (local_rank: 0)
  exitcode  : -15 (pid: 4100)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4100
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-02-03_04:05:06
  host      : node-07
  rank      : 9 (local_rank: 1)
  exitcode  : {code} (pid: 4101){name}
  error_file: <N/A>
  traceback : x
"""


@pytest.mark.parametrize(
    ("code", "fault"), [(-9, "killed"), (1, "exception"), (-6, "signal"), (-11, "signal")]
)
def test_the_root_cause_is_told_apart_from_those_that_were_ended_for_it(code: int, fault: str) -> None:
    died = (
        f"E0203 04:05:06.500000 26092 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        f"(exitcode: "
        f"{code}) local_rank: 1 (pid: 4101) of binary: /opt/venv/bin/python3\n"
    )
    facts = facts_of(died + TABLE.format(code=code, name=""))
    roots = [it for it in facts if it.details.get("root")]
    assert [(it.fault, it.rank, it.host) for it in roots if isinstance(it, Fault)] == [(fault, 9, "node-07")]
    assert [it.rank for it in facts if it.details.get("victim")] == [8]
    assert len(facts) == 2


def test_the_table_of_the_first_generation() -> None:
    table = """\
Root Cause:
[0]:
  time: 2021-10-03_04:05:06
  rank: 9 (local_rank: 1)
  exitcode: 1 (pid: 4101)
  error_file: <N/A>
  msg: "Process failed with exitcode 1"
=======================================
Other Failures:
[1]:
  time: 2021-10-03_04:05:07
  rank: 8 (local_rank: 0)
  exitcode: -15 (pid: 4100)
  error_file: <N/A>
  msg: "Signal 15 (SIGTERM) received by PID 4100"
"""
    facts = facts_of(table)
    assert [(it.rank, it.details.get("root"), it.details.get("victim")) for it in facts] == [
        (9, True, None),
        (8, None, True),
    ]


@pytest.mark.parametrize(
    ("one", "other"), [("0: ", "1: "), (" 3: ", "12: "), ("node-1: ", "node-2: "), ("", "7: ")]
)
def test_tables_of_several_agents_woven_into_each_other(one: str, other: str) -> None:
    def table(front: str, rank: int, pid: int, code: int) -> list[str]:
        return [
            f"{front}Root Cause (first observed failure):",
            f"{front}[0]:",
            f"{front}  time      : 2026-02-03_04:05:0{rank}",
            f"{front}  host      : host-{rank}",
            f"{front}  rank      : {rank} (local_rank: 0)",
            f"{front}  exitcode  : {code} (pid: {pid})",
        ]

    woven = zip(table(one, 2, 41, 1), table(other, 8, 42, -9), strict=True)
    told = facts_of([line for pair in woven for line in pair])
    assert [(it.rank, it.host, it.details["pid"], it.details["exit_code"]) for it in told] == [
        (2, "host-2", 41, 1),
        (8, "host-8", 42, -9),
    ]
    assert all(it.details["root"] for it in told)


def test_a_store_that_cannot_be_reached_is_a_lost_peer() -> None:
    fault = fault_of(
        [
            "Traceback (most recent call last):",
            '  File "/opt/venv/bin/torchrun", line 8, in <module>',
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection has failed.",
        ]
    )
    assert (fault.fault, fault.details["what"]) == ("nccl_error", "peer_gone")


def test_how_far_each_rank_came_by_the_report_of_a_desync() -> None:
    told = facts_of(
        [
            "[rank0]:[E203 04:05:06.5 ProcessGroupNCCL.cpp:9] ",
            "\t - [0] Timeout at collective: ALLREDUCE, #12",
            "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
            "\t   - [3] joined but didn't finish collective #11 (count from 1)",
            "\t     [1, 5] finished collective #11, but didn't join collective #12 (count from 1)",
            "\t - To our best knowledge, ranks [6] are the lagging ranks that caused this timeout. They never"
            " joined any collectives",
            "\t     [0, 1, 2] started ALLREDUCE",
        ]
    )
    assert [it.fault for it in told] == ["desync"] * 3
    assert told[0].details == {"what": "unfinished", "seq": 11, "ranks_unfinished": [3]}
    assert told[1].details == {"what": "absent", "seq": 12, "ranks_in_group": [1, 5]}
    assert told[2].details == {"what": "absent", "ranks_in_group": [6]}


def test_barriers_that_miss_other_ranks_are_two() -> None:
    lines = [f"RuntimeError: Rank {it} failed to pass monitoredBarrier in 2000 ms" for it in (1, 4, 1)]
    assert [it.details["ranks_in_group"] for it in facts_of(lines)] == [[1], [4]]


def test_the_name_of_the_signal_behind_the_code_changes_nothing() -> None:
    facts = facts_of(TABLE.format(code=-9, name=" (SIGKILL)"))
    assert [it.details.get("number") for it in facts] == [15, 9]


@pytest.mark.parametrize(
    "line",
    [
        "[2024-02-03 04:05:06,007] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
        "(exitcode: 1) "
        "local_rank: 2 (pid: 4002) of binary: /opt/venv/bin/python",
        "E0203 04:05:06.007000 4100 torch/distributed/elastic/multiprocessing/api.py:874] failed "
        "(exitcode: 1) "
        "local_rank: 2 (pid: 4002) of binary: /opt/venv/bin/python",
    ],
)
def test_a_death_that_no_table_tells_is_told_at_the_end(line: str) -> None:
    fault = fault_of(line)
    assert (fault.fault, fault.details["local_rank"], fault.details["exit_code"]) == ("exception", 2, 1)
    assert fault.t is not None


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4100 got signal: 15",
        "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers",
        "W0203 04:05:06.0 41 torch/distributed/elastic/agent/server/api.py:710] Received Signals.SIGTERM "
        "death "
        "signal, shutting down workers",
    ],
)
def test_a_launcher_that_is_told_to_stop(line: str) -> None:
    fault = fault_of(line)
    assert (fault.fault, fault.rank, fault.details["number"]) == ("signal", None, 15)


@pytest.mark.parametrize("words", ["Sending process 4103 closing signal", "Closing process 4103 via signal"])
def test_siblings_that_the_launcher_ends_are_an_event(words: str) -> None:
    (event,) = facts_of(f"W0203 04:05:06.0 41 api.py:890] {words} SIGTERM")
    assert isinstance(event, Event)
    assert (event.name, event.details) == ("signal_sent", {"pid": 4103, "number": 15, "victim": True})


# -- exceptions and what they are


def trace(last: str, front: str = "") -> list[str]:
    return [
        f"{front}Traceback (most recent call last):",
        f'{front}  File "/job/train.py", line 11, in <module>',
        f"{front}    main()",
        f"{front}{last}",
    ]


def test_an_exception_is_told_with_its_place() -> None:
    fault = fault_of(trace("RuntimeError: the shapes differ", "[rank3]: "))
    assert (fault.fault, fault.rank, fault.details["type"]) == ("exception", 3, "RuntimeError")
    assert fault.details["message"] == "the shapes differ"
    assert "train.py" in fault.details["frame"]


OLD = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.00 GiB total "
    "capacity; 70.00 GiB already allocated; 1.50 GiB free; 71.00 GiB reserved in total by PyTorch) If "
    "reserved "
    "memory is >> allocated memory try setting max_split_size_mb. See PYTORCH_CUDA_ALLOC_CONF"
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of "
    "79.00 GiB of which 1.50 GiB is free. Process 7 has 71.00 GiB memory in use. PYTORCH_ALLOC_CONF="
)


@pytest.mark.parametrize(
    "said", [OLD, NEW, OLD.replace("capacity", "capacty"), NEW.replace("capacity", "capacty")]
)
def test_a_want_of_device_memory_in_all_its_wordings(said: str) -> None:
    for fault in (fault_of(trace(said, "[rank11]: ")), fault_of(f"[rank11]: {said}")):
        assert (fault.fault, fault.rank) == ("oom", 11)
        told = fault.details
        assert told["local_gpu"] == 3
        assert (told["tried_bytes"], told["capacity_bytes"]) == (2 << 30, 79 << 30)
        assert told["free_bytes"] == 3 << 29


def test_what_to_do_if_memory_runs_out_is_prose() -> None:
    assert facts_of("If you see CUDA out of memory errors, lower the batch size\n") == []


@pytest.mark.parametrize(
    "said", ["in: <function _Connection.__del__ at 0x7f>", "while calling deallocator <function f at 0x7f>:"]
)
def test_an_exception_that_python_ignores_is_no_trouble(said: str) -> None:
    (event,) = facts_of(
        [
            f"Exception ignored {said}",
            "Traceback (most recent call last):",
            '  File "/usr/lib/python3.11/multiprocessing/connection.py", line 137, in __del__',
            "OSError: [Errno 9] Bad file descriptor",
        ]
    )
    assert isinstance(event, Event)
    assert (event.name, event.details["type"], event.details["fatal"]) == ("exception", "OSError", False)
    assert "<function" in event.details["ignored_in"]


def test_one_exception_of_many_ranks_without_a_name_is_told_once() -> None:
    assert len(facts_of([*trace("KeyError: 'x'"), *trace("KeyError: 'x'"), *trace("KeyError: 'x'")])) == 1


def test_that_a_child_failed_is_no_exception_of_its_own() -> None:
    assert facts_of(trace("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")) == []


@pytest.mark.parametrize("front", ["", "[rank1]: "])
def test_of_a_command_that_failed_the_exception_made_of_it_says_more(front: str) -> None:
    chain = [
        *trace("subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.", front),
        f"{front}",
        f"{front}The above exception was the direct cause of the following exception:",
        f"{front}",
        *trace("RuntimeError: Error building extension 'fused'", front),
    ]
    told = [it for it in facts_of(chain) if isinstance(it, Fault)]
    assert told[-1].details["message"] == "Error building extension 'fused'"
    assert len(told) == (2 if front else 1)


def test_a_lost_peer_is_one_fault_not_an_exception_and_an_error() -> None:
    fault = fault_of(trace("RuntimeError: [pair.cc:537] Read error: Connection reset by peer.", "[rank0]: "))
    assert (fault.fault, fault.rank, fault.details["what"]) == ("nccl_error", 0, "peer_gone")


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.DistBackendError: NCCL error in: a.cpp:1275, remote process exited, NCCL "
        "version 2.14.3",
        "[E ProcessGroupNCCL.cpp:9] [Rank 3] NCCL watchdog thread terminated with exception: NCCL error: "
        "unhandled system error, NCCL version 2.14.3",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
        "prematurely.",
        "gpu-a:41:77 [3] misc/socket.cc:46 NCCL WARN Net : Call to recv failed : Connection timed out",
        "gpu-a:41:77 [3] transport/net_ib.cc:96 NCCL WARN NET/IB : Got completion with error 12, opcode 0",
    ],
)
def test_an_error_of_nccl_without_a_traceback(line: str) -> None:
    assert fault_of(line).fault == "nccl_error"


def test_an_error_of_cuda_and_a_crash_that_no_traceback_tells() -> None:
    fault = fault_of("  what():  CUDA error: an illegal memory access was encountered")
    assert (fault.fault, fault.details["type"]) == ("exception", "CUDA error")
    fault = fault_of("Fatal Python error: Segmentation fault")
    assert (fault.fault, fault.details["number"]) == ("signal", 11)


@pytest.mark.parametrize("error", ["ConnectionResetError: [Errno 104] Connection reset by peer"])
def test_a_connection_of_another_program_is_no_lost_peer(error: str) -> None:
    assert fault_of(trace(error)).fault == "exception"
    assert facts_of("client_loop: send disconnect: Connection reset by peer") == []
    retried = "urllib3: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))"
    assert facts_of(f"wandb: WARNING {retried}, retrying") == []


@pytest.mark.parametrize("front", ["3: ", "node-07: ", "node-07: [rank3]: "])
def test_a_traceback_behind_the_name_of_a_task_or_a_host(front: str) -> None:
    fault = fault_of([*trace("ValueError: boom", front), f"{front}and so on"])
    assert (fault.fault, fault.details["type"], fault.details["message"]) == (
        "exception",
        "ValueError",
        "boom",
    )
    assert fault.host == ("node-07" if "node" in front else None)


def test_a_traceback_that_broke_off_is_not_waited_for_for_ever() -> None:
    broken = trace("", "[rank3]: ")[:2]
    reader = FactReader("train.log")
    reader.feed("\n".join([*broken, *["words"] * 5000, ""]).encode())
    assert reader.lines == 5002
    assert [it.fault for it in reader.end() if isinstance(it, Fault)] == []
    assert not any(it.wants_more for it in reader._openers)


@pytest.mark.parametrize(
    ("word", "fault", "number"), [("Killed", "killed", 9), ("Segmentation fault", "signal", 11)]
)
def test_a_process_that_the_shell_saw_end(word: str, fault: str, number: int) -> None:
    told = fault_of(f"/bin/bash: line 7:  4100 {word}                  python train.py")
    assert (told.fault, told.details) == (fault, {"number": number, "pid": 4100})


def test_a_warning_of_nccl_names_its_host() -> None:
    fault = fault_of(
        "gpu-a:41:77 [3] ib_plugin.c:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.4<5> with status=12"
        " opcode=0 len=0 vendor err 129 (Recv)"
    )
    assert (fault.fault, fault.host, fault.details["local_gpu"]) == ("nccl_error", "gpu-a", 3)


def test_what_an_error_of_nccl_means_stands_in_the_next_line_and_is_none_of_its_own() -> None:
    lines = [
        "[rank3]:[E P.cpp:9] [PG 0 Rank 3] thread terminated with exception: NCCL error: remote exit",
        "ncclRemoteError: A call failed possibly due to a network error.",
    ]
    (fault,) = facts_of(*lines)
    assert (fault.fault, fault.rank) == ("nccl_error", 3)


def test_a_warning_of_nccl_that_is_no_trouble_is_none() -> None:
    assert facts_of("gpu-a:41:77 [3] graph/xml.cc:12 NCCL WARN No NVLink topology file is given") == []


@pytest.mark.parametrize(
    "what", ["Failed to open libibverbs.so[.1]", "NET/Plugin : Failed to find ncclPlugin_v9 symbol."]
)
def test_what_nccl_goes_on_without_is_no_trouble(what: str) -> None:
    assert facts_of(f"n7:41:42 [0] misc/wrap.cc:9 NCCL WARN {what}\n") == []


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("RuntimeError: HIP error: unspecified launch failure", "HIP error", "unspecified launch failure"),
        (
            "Memory access fault by GPU node-3 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
            "Memory access fault",
            "by GPU node-3 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
        ),
        ("HW Exception by GPU node-1 reason :GPU Hang", "HW Exception", "by GPU node-1 reason :GPU Hang"),
    ],
)
def test_an_error_of_rocm_that_no_traceback_tells(line: str, kind: str, message: str) -> None:
    fault = fault_of(line)
    assert (fault.fault, fault.details) == ("exception", {"type": kind, "message": message})


def test_the_error_file_of_a_rank() -> None:
    stack = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in main\n    raise'
    told = {"message": NEW, "extraInfo": {"py_callstack": stack, "timestamp": "1770000000"}}
    content = json.dumps({"message": told}).encode()
    assert ErrorFile().fits(content, "error.json")
    (fault,) = ErrorFile().facts(content, "error.json")
    assert isinstance(fault, Fault)
    assert (fault.fault, fault.t, fault.details["local_gpu"]) == ("oom", 1_770_000_000.0, 3)
    assert fault.details["frame"] == 'File "/job/train.py", line 9, in main'
    (fault,) = ErrorFile().facts(b'{"message": "Process failed with exitcode 1"}', "error.json")
    assert isinstance(fault, Fault)
    assert fault.fault == "exception"
    with pytest.raises(ValueError, match="no message"):
        ErrorFile().facts(b'{"message": 7}', "error.json")


def test_deepspeeds_launcher_tells_the_signal_by_its_code() -> None:
    fault = fault_of("[ERROR] [launch.py:1:sigkill_handler] ['python', 'x'] exits with return code = -11")
    assert (fault.fault, fault.details) == ("signal", {"exit_code": -11, "number": 11})


# -- Slurm and the kernel


def test_slurm_since_25_puts_the_time_in_front() -> None:
    fault = fault_of(
        "[2026-02-03T04:05:06.250] error: *** STEP 4711.0 ON node-07 CANCELLED AT 2026-02-03T04:05:06"
        " DUE TO TIME LIMIT ***"
    )
    assert (fault.fault, fault.host, fault.details["why"]) == ("killed", "node-07", "TIME LIMIT")


@pytest.mark.parametrize("why", ["TIME LIMIT", "NODE FAILURE", "PREEMPTION"])
@pytest.mark.parametrize("of", ["STEP 4711.0", "JOB 4711"])
def test_a_job_that_slurm_cancelled(why: str, of: str) -> None:
    fault = fault_of(
        f"slurmstepd: error: *** {of} ON node-07 CANCELLED AT 2026-02-03T04:05:06 DUE TO {why} ***"
    )
    assert (fault.fault, fault.host, fault.details["why"]) == ("killed", "node-07", why)
    assert fault.t is not None


def test_a_job_that_somebody_cancelled() -> None:
    assert fault_of("slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-02-03T04:05:06 ***").details == {
        "job": "1.0",
        "why": "cancelled",
    }


@pytest.mark.parametrize(
    ("how", "code", "number"),
    [
        ("Exited with exit code 1", "exception", None),
        ("Killed", "killed", 9),
        ("Terminated", "signal", 15),
        ("Segmentation fault (core dumped)", "signal", 11),
        ("Out Of Memory", "killed", None),
    ],
)
def test_a_task_that_srun_saw_end(how: str, code: str, number: int | None) -> None:
    fault = fault_of(f"srun: error: node-07: tasks 0-3,5: {how}")
    assert (fault.fault, fault.host, fault.rank) == (code, "node-07", None)
    assert (fault.details["tasks"], fault.details.get("number")) == ("0-3,5", number)


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0. Some of your processes may "
        "have been "
        "killed by the cgroup out-of-memory handler.",
        "slurmstepd: error: Detected 2 oom_kill events in StepId=4711.0. Some of the step tasks have been "
        "OOM Killed.",
    ],
)
def test_a_job_that_wanted_too_much_host_memory(line: str) -> None:
    fault = fault_of(line)
    assert (fault.fault, fault.details) == ("killed", {"why": "out of host memory", "job": "4711.0"})


def test_slurm_as_a_word_is_no_fault() -> None:
    assert facts_of("slurmstepd: info: all is well\nsrun: error: Unable to allocate: Invalid account") == []


@pytest.mark.parametrize(
    "front",
    [
        "",
        "[12345.678901] ",
        "[Tue Feb  3 04:05:06 2026] ",
        "[  +6.010643] ",
        "6,901,100,-;",
        "Feb  3 04:05:06 n7 kernel: ",
    ],
)
def test_an_xid_in_every_print_of_the_kernel_log(front: str) -> None:
    fault = fault_of(
        f"{front}NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"
    )
    assert (fault.fault, fault.details["code"], fault.details["pci"]) == ("xid", 79, "0000:3b:00")


def test_a_process_that_the_kernel_killed_is_one_fault() -> None:
    fault = fault_of("[99.1] Out of memory: Killed process 4100 (python) total-vm:1kB, anon-rss:1kB")
    assert (fault.fault, fault.details["pid"]) == ("killed", 4100)


# -- stacks

STACKS = """\
Process 4100: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4100 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3252)
    <module> (train.py:6)
Thread 4111 (active+gil): "loader"
    read (data.py:9)
"""


def test_the_threads_of_a_py_spy_dump_are_events() -> None:
    facts = facts_of(STACKS + STACKS.replace("4100", "4200"), name="rank_3.txt")
    assert [(it.name, it.details["pid"]) for it in facts if isinstance(it, Event)] == [
        ("stack", 4100),
        ("stack", 4100),
        ("stack", 4200),
        ("stack", 4200),
    ]
    assert facts[0].details["frames"][1] == "<module> (train.py:6)"
    assert facts[1].details["state"] == "active+gil"


def test_those_of_a_py_spy_dump_in_json_too() -> None:
    thread = {
        "pid": 4100,
        "thread_id": 1,
        "thread_name": "MainThread",
        "os_thread_id": 4100,
        "active": False,
        "owns_gil": True,
        "frames": [{"name": "step", "filename": "/job/train.py", "short_filename": "train.py", "line": 6}],
    }
    content = json.dumps([thread]).encode()
    assert PySpyJson.fits(content, "rank_0.json")
    (event,) = PySpyJson.facts(content, "rank_0.json")
    assert event.details["frames"] == ["step (train.py:6)"]
    assert event.details["state"] == "idle+gil"
    with pytest.raises(ValueError, match="no whole JSON"):
        list(PySpyJson.facts(content[:-2], "rank_0.json"))
