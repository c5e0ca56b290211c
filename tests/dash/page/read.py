"""HTML read as a browser would: its tags and its text."""

from __future__ import annotations

from html.parser import HTMLParser

__all__ = ["Read"]


class Read(HTMLParser):
    """`tags` with their attributes, in order; `text` is all between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)
