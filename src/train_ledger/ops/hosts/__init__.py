"""Which hosts are meant, and what comes back from each where something is done on all?"""

from train_ledger.ops.hosts.named import HostsError, hosts_in, is_host

__all__ = ["HostsError", "hosts_in", "is_host"]
