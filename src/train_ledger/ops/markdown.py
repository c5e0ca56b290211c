r"""How does a word from a log stand in Markdown without doing anything there?"""

from __future__ import annotations

import re

from train_ledger.render import harmless

__all__ = ["inert"]

_ACTS = re.compile(r"[\\`*\[\]#|~$!]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=\bwww)\.", re.IGNORECASE)
_OPENS_A_BLOCK = re.compile(r"(?:[-+=]|\d+(?=[.)]))")


def inert(value: object) -> str:
    r"""`value` on one line, with nothing in it that Markdown, HTML or a terminal would act on.

    >>> inert("[a](javascript:x) <b> _check_batch hang.rank_missing")
    '\\[a\\](javascript:x) &lt;b&gt; \\_check_batch hang.rank_missing'
    """
    text = " ".join(harmless(value).split())
    opening = _OPENS_A_BLOCK.match(text)
    escaped = _ACTS.sub(r"\\\g<0>", text.replace("&", "&amp;"))
    if opening:
        at = 0 if opening[0] in "-+=" else opening.end()
        escaped = f"{escaped[:at]}\\{escaped[at:]}"
    return escaped.replace("<", "&lt;").replace(">", "&gt;")
