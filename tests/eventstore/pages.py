"""Which bytes of a SQLite file mean something, by the file format alone (https://sqlite.org/fileformat2.html)."""

CACHES_AND_PEOPLE = [*range(24, 28), *range(40, 44), *range(92, 100)]
"""The header's change counter, schema cookie, and the numbers of the versions that wrote it."""


def dead_bytes(content: bytes, tables: dict[str, int]) -> set[int]:
    """The bytes that no query can depend on, of a file without free pages; ``tables`` has root pages by name."""
    file = _File(content)
    for root in (1, *tables.values()):
        file.walk(root, is_log=root == tables["events"])
    assert file.pages == set(range(1, len(content) // file.size + 1)), "some page belongs to nothing"
    return {*range(len(content))} - file.live | file.ignored | set(CACHES_AND_PEOPLE)


class _File:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = int.from_bytes(content[16:18], "big")
        self.live = set(range(100))
        self.ignored: set[int] = set()
        """Types of fields that stand for the row's key, and are empty."""
        self.pages: set[int] = set()

    def walk(self, number: int, *, is_log: bool) -> None:
        self.pages.add(number)
        page = (number - 1) * self.size
        header = page + (100 if number == 1 else 0)
        kind = self._content[header]
        is_leaf, is_table = kind in {10, 13}, kind in {5, 13}
        self.live.update(range(header, header + (8 if is_leaf else 12)))
        if not is_leaf:
            self.walk(self._number(header + 8, 4), is_log=is_log)
        pointers = header + (8 if is_leaf else 12)
        count = self._number(header + 3, 2)
        self.live.update(range(pointers, pointers + 2 * count))
        for pointer in range(pointers, pointers + 2 * count, 2):
            at = page + self._number(pointer, 2)
            self._cell(at, is_leaf=is_leaf, is_table=is_table, is_log=is_log)
        # Free blocks are a list: where the next is, and how long this one is.
        block = self._number(header + 1, 2)
        while block:
            self.live.update(range(page + block, page + block + 4))
            block = self._number(page + block, 2)

    def _cell(self, at: int, *, is_leaf: bool, is_table: bool, is_log: bool) -> None:
        start = at
        if not is_leaf:
            self.walk(self._number(at, 4), is_log=is_log)
            at += 4
        if is_table and not is_leaf:
            _, at = self._varint(at)
            self.live.update(range(start, at))
            return
        payload, at = self._varint(at)
        if is_table:
            _, at = self._varint(at)
            if is_log:
                _, types = self._varint(at)
                self.ignored.add(types)
        most = self.size - 35 if is_table else (self.size - 12) * 64 // 255 - 23
        least = (self.size - 12) * 32 // 255 - 23
        local = payload
        if payload > most:
            local = least + (payload - least) % (self.size - 4)
            if local > most:
                local = least
        self.live.update(range(start, at + local))
        if payload > local:
            self.live.update(range(at + local, at + local + 4))
            self._overflow(self._number(at + local, 4), payload - local)

    def _overflow(self, number: int, left: int) -> None:
        while left > 0:
            self.pages.add(number)
            page = (number - 1) * self.size
            here = min(left, self.size - 4)
            self.live.update(range(page, page + 4 + here))
            left -= here
            number = self._number(page, 4)

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self._content[at : at + size], "big")

    def _varint(self, at: int) -> tuple[int, int]:
        value = 0
        for byte in self._content[at : at + 8]:
            value, at = value << 7 | byte & 127, at + 1
            if byte < 128:
                return value, at
        return value << 8 | self._content[at], at + 1
