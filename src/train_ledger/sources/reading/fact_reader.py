"""What facts do the lines of one file tell, whatever wrote it?

The format is recognised, never asked for: by the head and the name of a file that one format has to itself,
else by the marks in each line, since several programs write into one log. Every line goes to all whose marks
stand in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from train_ledger.facts import Fact
from train_ledger.sources.formats import LINE_FORMATS, OWNED_FORMATS, LineFormat
from train_ledger.sources.lines.log_line import LogLine, read_line
from train_ledger.sources.logs.torchrun import LogPlace
from train_ledger.sources.reading.attempt_count import AttemptCount
from train_ledger.sources.reading.program import FormatSeen, Program, is_source_code
from train_ledger.sources.reading.standing_marks import standing_marks_of
from train_ledger.sources.reading.told_facts import ToldFacts
from train_ledger.sources.reading.wanted_lines import LINE_BYTES, Shapes, WantedLines

__all__ = ["FactReader"]

_HEAD_BYTES = 4096
_BARS_BYTES = 1 << 20
"""What tqdm draws over itself is one line until the next record ends it, however long it takes."""
_NO_PLACE = LogPlace()


class FactReader:
    """The facts of one file, handed to it in pieces of any size.

    `name` stands in front of the line's number in `source`. `place` is what the file's path tells of its
    rank; `written_t` when it was written last, in unix seconds, for the year that some times leave out.
    `attempts` numbers the attempts, with what is known from other files. `feed` keeps a line without its end,
    and facts that the next lines may join; `settle` hands these out, where one follows a file that grows;
    `end` is for a file that is complete. Nothing in a file makes it raise.
    """

    def __init__(
        self,
        name: str,
        place: LogPlace = _NO_PLACE,
        *,
        written_t: float | None = None,
        attempts: AttemptCount | None = None,
    ) -> None:
        self.name = name
        self.place = place
        self.cut = 0
        self._written_t = written_t
        self._told = ToldFacts(place, attempts or AttemptCount(name, place.attempt))
        self._head: bytes | None = b""
        self._rest = b""
        self._since = ""
        self._is_in_cut_line = False
        self._programs: list[Program] = []
        self._openers: list[Program] = []
        self._is_owned = False
        self._wanted = WantedLines(_shapes_of(()), self._wants_more)
        self._standing = standing_marks_of(())

    # -- what is known of the file

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return self._wanted.lines

    @property
    def lines_told(self) -> int:
        """How many of them told something."""
        return self._told.lines_told

    @property
    def last_t(self) -> float | None:
        """The newest time that a line told, in unix seconds."""
        return self._told.last_t

    @property
    def last_log_t(self) -> dict[int, float]:
        """The same of each rank."""
        return self._told.last_log_t

    @property
    def attempts(self) -> AttemptCount:
        return self._told.attempts

    @property
    def formats(self) -> tuple[FormatSeen, ...]:
        """The formats that told something, in the order in which they are looked for."""
        return tuple(
            it.seen
            for it in self._programs
            if it.seen.steps + it.seen.events + it.seen.faults or self._is_owned
        )

    @property
    def damaged(self) -> Counter[str]:
        """Lines of a known format that could not be taken, by reason."""
        found = Counter({"longer than 64 KiB, cut": self.cut} if self.cut else {})
        for program in self._programs:
            found.update(program.damaged)
            if program.doubted is not None:
                found["a single line like a step's, not believed"] += 1
        return found

    @property
    def repeated(self) -> Counter[str]:
        """Faults that say again what one before them said, by code."""
        return self._told.repeated

    def _wants_more(self) -> bool:
        return any(it.wants_more for it in self._openers)

    # -- lines in, facts out

    def feed(self, data: bytes) -> list[Fact]:
        """The facts that are complete now."""
        if self._head is not None:
            self._head += data
            if len(self._head) < _HEAD_BYTES:
                return []
            data = self._recognise()
        return list(self._fed(data))

    def skip_to(self, byte: int) -> list[Fact]:
        """What comes next stands at `byte` of the file; what is before it was left out from here on.

        Returns what was complete. Lines are counted anew, as those behind that byte.
        """
        told = self.settle()
        self._since = f"@{byte}"
        self._rest = b""
        self._wanted.lines = 0
        return told

    def settle(self) -> list[Fact]:
        """What waits for lines that may never come; a line without its end is kept."""
        told = list(self._fed(self._recognise())) if self._head else []
        return [*told, *self._told.settle()]

    def end(self) -> list[Fact]:
        """What is still open; a last line without its end is read, too."""
        told = list(self._fed(self._recognise())) if self._head is not None else []
        if self._rest:
            rest, self._rest = self._rest, b""
            told += self._block(rest)
        for program in self._programs:
            told += self._told.passed(program, program.format.end(), _NO_LINE)
        return [*told, *self._told.settle()]

    def _recognise(self) -> bytes:
        head, self._head = self._head or b"", None
        file_name = self.name.rpartition("/")[2]
        owner = next((it for it in OWNED_FORMATS if it.fits(head[:_HEAD_BYTES], file_name)), None)
        self._is_owned = owner is not None
        kinds: Sequence[type[LineFormat]] = LINE_FORMATS if owner is None else (owner,)
        self._programs = [Program(it, self._written_t) for it in kinds]
        self._openers = [it for it in self._programs if it.may_want_more]
        self._told.is_alone = self._is_owned
        wants_more = (lambda: True) if self._is_owned else self._wants_more
        self._wanted = WantedLines(_shapes_of(tuple(mark for it in kinds for mark in it.marks)), wants_more)
        self._standing = standing_marks_of(tuple(it.marks for it in kinds))
        return head

    def _fed(self, data: bytes) -> Iterator[Fact]:
        if self._is_in_cut_line:
            _, newline, data = data.partition(b"\n")
            self._is_in_cut_line = not newline
        whole, newline, tail = (self._rest + data).rpartition(b"\n")
        longest = _BARS_BYTES if b"\r" in tail[-LINE_BYTES:] else LINE_BYTES
        if len(tail) > longest:
            self._is_in_cut_line = True
            self.cut += 1
            whole, newline, tail = (whole + b"\n" if newline else b"") + tail[:longest], b"\n", b""
        self._rest = tail
        if newline:
            yield from self._block(whole)

    def _block(self, block: bytes) -> Iterator[Fact]:
        for number, line in self._wanted.of(block):
            before = self._told.lines_told
            source = f"{self.name}{self._since}:{number}"
            if self._is_owned:
                yield from self._of_owner(line, source)
            elif b"\r" in line:
                yield from self._of_pieces(line, source)
            else:
                line = line[:LINE_BYTES]
                yield from self._of_line(line, source, self._wanting(line))
            self._told.lines_told = min(self._told.lines_told, before + 1)

    def _of_owner(self, line: bytes, source: str) -> Iterator[Fact]:
        (program,) = self._programs
        text = line.rstrip(b"\r").decode("utf-8", "replace")
        facts = program.format.read(LogLine(text, self.place.rank), source)
        yield from self._told.passed(program, facts, _NO_LINE)

    def _of_pieces(self, line: bytes, source: str) -> Iterator[Fact]:
        """What a terminal shows one over the other."""
        marks = dict(self._standing.of(line))
        may = [(it, marks.get(place, ())) for place, it in enumerate(self._programs)]
        may = [(it, marks) for it, marks in may if marks or it.may_want_more]
        for whole in filter(None, line.split(b"\r")):
            piece = whole[:LINE_BYTES]
            stands = piece.__contains__
            wanting = [it for it, marks in may if any(map(stands, marks)) or it.wants_more]
            yield from self._of_line(piece, source, wanting)

    def _wanting(self, line: bytes) -> list[Program]:
        """The programs of which a mark stands in the line, and those that want it whatever stands in it."""
        places = self._standing.places(line)
        if not self._wants_more():
            return [self._programs[place] for place in places]
        return [it for place, it in enumerate(self._programs) if place in places or it.wants_more]

    def _of_line(self, piece: bytes, source: str, wanting: Sequence[Program]) -> Iterator[Fact]:
        if not wanting:
            return
        line = read_line(piece, self._written_t)
        is_code = is_source_code(line.text)
        for program in wanting:
            if not is_code or program.wants_more:
                yield from self._told.passed(program, program.format.read(line, source), line)


_NO_LINE = LogLine("")


@cache
def _shapes_of(marks: tuple[bytes, ...]) -> Shapes:
    """One of all files that are read for the same marks: a thousand ranks write lines of the same shapes."""
    return Shapes(marks)
