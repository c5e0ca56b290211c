"""How can a rank be dumped from outside while C code holds Python's lock?

torch's own worker server answers on threads of C++: POST /handler/fr_trace_json gives the Flight Recorder
without Python's help. It has no password: it listens on a socket file in the run directory, for those who
may write there, or, where that path is too long for one, on a loopback port.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from train_ledger.run_dir import RunDir

__all__ = ["serve"]

_LONGEST_SOCKET_PATH = 107


def serve(run_dir: RunDir, rank: int) -> dict[str, Any]:
    """Start the server; {"worker_server": "unix:/…" or "tcp:127.0.0.1:…"} or {"worker_server_error": why}.

    Imports torch, since it was asked for.
    """
    try:
        server_type: Any = importlib.import_module("torch._C._distributed_c10d")._WorkerServer
    except (ImportError, AttributeError) as error:
        return {"worker_server_error": f"this torch has no worker server: {error}"}
    path = str(run_dir.path / "sockets" / f"rank_{rank}.sock")
    try:
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            return _on_socket(server_type, path)
        server = server_type("127.0.0.1", 0)
    except (OSError, RuntimeError) as error:
        return {"worker_server_error": str(error)}
    _keep_for_ever(server)
    return {"worker_server": f"tcp:127.0.0.1:{server.port}"}


def _on_socket(server_type: Any, path: str) -> dict[str, Any]:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)  # an earlier attempt's: nobody can listen on it any more
    _keep_for_ever(server_type(path))
    return {"worker_server": f"unix:{path}"}


def _keep_for_ever(server: Any) -> None:
    # Its destructor and shutdown() join a thread that may still serve somebody, which held exits up for good
    # (torch 2.13): the server lives until the process ends.
    import ctypes  # here, since `import train_ledger` is to be quick

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
