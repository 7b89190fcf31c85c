"""The meanings of sections, as vectors beside a domain's indexes: by the hash of a section's words, so that an
unchanged section is never embedded again, whichever index it is in.

Vectors are of length 1 and kept as half floats (2 bytes a number; a thousandth off at most). They order the pages that
the words found, which hold the right one nearly always (DESIGN, "Search"), so a query reads a few hundred of them and
never all, and no matrix library is needed.
"""

import hashlib
import math
import re
import sqlite3
import struct
import threading
from collections.abc import Mapping, Sequence
from operator import mul
from pathlib import Path

MAX_DIMENSIONS = 8192
READ_AT_ONCE = 500


def content_hash(title: str, heading_path: Sequence[str], text: str) -> bytes:
    """Return the hash of the text that a section's vector is made from."""
    return hashlib.blake2b(meant(title, heading_path, text).encode(), digest_size=16).digest()


def meant(title: str, heading_path: Sequence[str], text: str) -> str:
    """A section as a model is to understand it: where it stands, and what it says."""
    return f"{' / '.join((title, *heading_path))}\n\n{text}"


class Vectors:
    """The vectors of one domain and one model. Every method may be called from any thread."""

    def __init__(self, folder: Path, model: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{re.sub(r'[^A-Za-z0-9]+', '-', model)[:60]}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
        self._lock = threading.Lock()
        self._db = sqlite3.connect(folder / f".vectors-{name}.db", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):  # a vector that is lost is made again
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors(hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
        )

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Raises ValueError for a vector without a direction, or too long."""
        rows = [(key, _packed(vector)) for key, vector in vectors.items()]
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            self._db.execute("COMMIT")

    def missing(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Return those of the hashes that have no vector, in their order."""
        with self._lock:
            known = {key for (key,) in self._db.execute("SELECT hash FROM vectors")}
        return [key for key in dict.fromkeys(hashes) if key not in known]

    def keep_only(self, hashes: Sequence[bytes]) -> None:
        """Forget what no section says any more."""
        kept = set(hashes)
        with self._lock:
            gone = [(key,) for (key,) in self._db.execute("SELECT hash FROM vectors") if key not in kept]
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM vectors WHERE hash = ?", gone)
            self._db.execute("COMMIT")

    def nearness(self, hashes: Sequence[bytes], query: Sequence[float]) -> dict[bytes, float]:
        """Return, for the sections that have a vector, its cosine with the query's, -1 .. 1."""
        length = math.sqrt(sum(map(mul, query, query)))
        if not length:
            return {}
        one = [number / length for number in query]
        unpack = struct.Struct(f"<{len(one)}e")
        found: dict[bytes, float] = {}
        for at in range(0, len(hashes), READ_AT_ONCE):
            part = hashes[at : at + READ_AT_ONCE]
            marks = ",".join("?" * len(part))
            with self._lock:
                rows = self._db.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", part).fetchall()  # noqa: S608
            found |= {
                key: sum(map(mul, one, unpack.unpack(vector))) for key, vector in rows if len(vector) == unpack.size
            }
        return found


def _packed(vector: Sequence[float]) -> bytes:
    length = math.sqrt(sum(map(mul, vector, vector)))
    if not 0 < len(vector) <= MAX_DIMENSIONS or not math.isfinite(length) or not length:
        raise ValueError("a vector has a length, and 1 to 8192 numbers")
    return struct.pack(f"<{len(vector)}e", *(number / length for number in vector))
