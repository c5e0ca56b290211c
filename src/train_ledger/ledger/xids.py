"""How bad is an XID, what does it mean, and what is done about it?

The table follows NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors: what is done at once, what is looked
into) where those who monitor agree on it: gpud (components/accelerator/nvidia/xid), Meta's gcm
(xid_error_codes), NVSentinel (health-events-analyzer), NVIDIA's k8s-device-plugin. Where they do not, a code
pages only if training on that GPU cannot go on: 63 and 92 are signs of wear, 68 is of a video decoder, 94 is
contained to one process (the plugin takes the GPU out for it, gpud does not), 109 stops the work (gcm and
the plugin pass it over). 13 and 31 are a program's doing until the same GPU does it again (NVSentinel); 45
follows other faults and every kill, and has drained whole clusters where it was taken for one. Codes that are
not listed are recorded: most are reserved. What a team sees otherwise it sets in `[xid]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from train_ledger import config

__all__ = ["XIDS", "Level", "Xid", "level_here", "xid", "xid_level"]

Level = Literal["page", "record", "ignore"]
_Rule = Literal["page", "record", "ignore", "repeated", "fatal", "rank"]


@dataclass(frozen=True, slots=True)
class Xid:
    """One code. `rule` is its level, or what decides it: "repeated" pages from the second on one GPU within
    24 h, "fatal" where the line says Fatal, "rank" where a rank of a run is on the GPU.
    """

    code: int
    rule: _Rule
    meaning: str
    action: str


_RESTART = "restart the job from its last checkpoint"
_RESET = "reset the GPU before it is used again; take the host out if it comes back"
_TAKE_OUT = "take the host out, reset the GPU"
_REBOOT = "take the host out and reboot it, cold if needed"
_LINK = "check the link and its other end; reset the GPU if the link stays down"
_NEXT_STOP = "reset the GPU at the next stop"
_NONE = "nothing on the host; see what the process said first"

_TABLE: tuple[tuple[int, _Rule, str, str], ...] = (
    (8, "record", "a channel was idle past its time limit", _RESTART),
    (11, "record", "malformed commands from the program", _RESTART),
    (13, "repeated", "a kernel did what it must not (illegal address or instruction)", _NONE),
    (25, "record", "illegal commands from the program", _RESTART),
    (31, "repeated", "a page fault: a kernel touched memory that is not mapped", _NONE),
    (32, "repeated", "commands arrived damaged over PCIe", _RESTART),
    (37, "record", "an unknown method of the driver's firmware", _NONE),
    (38, "repeated", "the driver's firmware did not answer in time", _NEXT_STOP),
    (43, "record", "the program's channel was reset; the GPU itself is fine", _NONE),
    (44, "record", "a fault while work was switched", _NONE),
    (45, "record", "channels cleaned up after an earlier error or a kill", "look for the XID before it"),
    (46, "page", "the GPU stopped working on what it was given", _RESET),
    (48, "page", "an uncorrectable error of GPU memory", _TAKE_OUT),
    (54, "page", "the auxiliary power cable", "see to the power cables of the host"),
    (60, "ignore", "the video processor", _NONE),
    (61, "page", "a micro-controller of the GPU stopped at a breakpoint", _RESET),
    (62, "page", "a micro-controller of the GPU halted", _RESET),
    (63, "record", "a row of memory is to be remapped at the next reset", _NEXT_STOP),
    (64, "page", "a row of memory could not be remapped", _TAKE_OUT),
    (66, "record", "an illegal access by the driver", _NONE),
    (67, "record", "an illegal access by the driver", _NONE),
    (68, "record", "the video decoder", _RESTART),
    (69, "record", "a bad command to an engine", _RESTART),
    (74, "page", "an NVLink error", _LINK),
    (78, "ignore", "a virtual GPU did not start", _NONE),
    (79, "page", "fell off the bus: it no longer answers over PCIe", _REBOOT),
    (80, "repeated", "commands arrived with a wrong checksum", _RESTART),
    (92, "record", "many corrected memory errors", "watch their number"),
    (93, "record", "the InfoROM is worn", _NONE),
    (94, "rank", "an uncorrectable memory error, contained to one process", _NEXT_STOP),
    (95, "page", "an uncorrectable memory error, not contained: results since are suspect", _TAKE_OUT),
    (106, "ignore", "a test message", _NONE),
    (107, "ignore", "a test message", _NONE),
    (109, "page", "work could not be switched in time", _RESET),
    (110, "page", "a security fault of the firmware", _RESET),
    (119, "page", "the GPU's system processor does not answer", _REBOOT),
    (120, "page", "the GPU's system processor failed", _REBOOT),
    (121, "repeated", "a corrected error of the chip-to-chip link", _NEXT_STOP),
    (136, "page", "an NVLink did not come up", _LINK),
    (137, "record", "an NVLink access failed, as when the peer fails", "look for the GPU that failed first"),
    (140, "page", "an uncorrectable memory error that escaped detection", _TAKE_OUT),
    (141, "record", "an error of the fast path", _NONE),
    (143, "page", "the GPU did not initialise", _TAKE_OUT),
    (144, "fatal", "an NVLink error (SAW)", _LINK),
    (145, "fatal", "an NVLink error (RLW)", _LINK),
    (146, "fatal", "an NVLink error (TLW)", _LINK),
    (147, "fatal", "an NVLink error (TREX)", _LINK),
    (148, "fatal", "an NVLink error (NVLPW)", _LINK),
    (149, "fatal", "an NVLink error (NETIR)", _LINK),
    (150, "page", "an NVLink error (MSE)", _LINK),
    (151, "record", "a key could not be rotated", "restart the virtual machine"),
    (154, "record", "the driver says what recovery the GPU needs", "do what the line names"),
    (155, "page", "an NVLink error that the software defines", _RESET),
    (156, "record", "a resource was retired, in force from the next reset", _NEXT_STOP),
    (157, "page", "a resource could not be retired", _TAKE_OUT),
    (158, "page", "the GPU did not answer in time", _RESET),
    (160, "record", "a channel was retired", _NONE),
    (161, "repeated", "a channel could not be retired", _NEXT_STOP),
    (163, "record", "power smoothing was switched off", _NONE),
    (167, "page", "PCIe did not answer in time", _REBOOT),
    (168, "record", "the GPU has less memory than it had", "plan to replace it"),
    (169, "page", "a security processor of the GPU halted", _RESET),
    (171, "page", "an uncorrectable error of DRAM", _TAKE_OUT),
    (172, "page", "an uncorrectable error of SRAM", _TAKE_OUT),
)
_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_MEDIA = (82, 83, 84, 86, 88, 89, *range(96, 106), 139, 142)

XIDS: Mapping[int, Xid] = {
    **{code: Xid(code, "record", "a copy engine failed", _RESTART) for code in _COPY_ENGINES},
    **{code: Xid(code, "record", "a media engine failed", _RESTART) for code in _MEDIA},
    **{row[0]: Xid(*row) for row in _TABLE},
}


def xid(code: int) -> Xid:
    """The row of a code; one that is recorded where it is not listed."""
    return XIDS.get(code) or Xid(code, "record", "not in the table", "see NVIDIA's catalogue")


def xid_level(code: int, text: str = "", *, times: int = 1, of_a_rank: bool = True) -> Level:
    """Whether one report pages: `text` is its line, `times` how often this GPU had the code in 24 h.

    >>> xid_level(79), xid_level(43), xid_level(149, "NETIR_LINK_EVT Nonfatal XC0"), xid_level(31, times=2)
    ('page', 'record', 'record', 'page')
    """
    rule = xid(code).rule
    if rule == "repeated":
        return "page" if times > 1 else "record"
    if rule == "fatal":
        return "page" if " Fatal" in f" {text}" else "record"
    if rule == "rank":
        return "page" if of_a_rank else "record"
    return rule


def level_here(code: int, text: str = "", *, times: int = 1, overrides: config.Xid) -> Level:
    """The same of a GPU of a rank, by the levels that the user set, and else the table.

    >>> level_here(63, overrides=config.Xid(page=(63,))), level_here(79, overrides=config.Xid(record=(79,)))
    ('page', 'record')
    """
    if code in overrides.page:
        return "page"
    if code in overrides.record:
        return "record"
    return "ignore" if code in overrides.ignore else xid_level(code, text, times=times)
