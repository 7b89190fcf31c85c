"""The meanings of sections, as vectors beside a domain's indexes: by the hash of a section's words, so that an
unchanged section is never embedded again, whichever index it is in.

They order the pages that the words found, which hold the right one nearly always (DESIGN, "Search"), so a query reads a
few hundred of them and never all.
"""

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.retrieval.index.bit_vectors import cosine_with, dimensions, encode
from service.runtime.sqlite_files import open_write_ahead

READ_AT_ONCE = 500
FORM = 2
"""The form of stored vectors; those of another form are made again."""


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
        self._file = folder / f".vectors-{name}.db"
        self._lock = threading.Lock()
        self._db = open_write_ahead(self._file)
        try:
            self._db.execute("PRAGMA synchronous = NORMAL")  # a vector that is lost is made again
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        if self._db.execute("PRAGMA user_version").fetchone() == (FORM,):
            return
        with self._transaction():
            if self._db.execute("PRAGMA user_version").fetchone() != (FORM,):  # another one may have been as fast
                self._db.execute("DROP TABLE IF EXISTS vectors")
                self._db.execute("CREATE TABLE vectors(hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")
                self._db.execute(f"PRAGMA user_version = {FORM}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """After an error, of a full disk say, the next one can begin."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def dimensions(self) -> int | None:
        """Return the length of the vectors; None while there are none."""
        with self._lock:
            kept = self._db.execute("SELECT vector FROM vectors LIMIT 1").fetchone()
        return dimensions(kept[0]) if kept is not None else None

    def add(self, vectors: Mapping[bytes, Sequence[float]]) -> list[bytes]:
        """Keep the vectors, all of one length; return the hashes of those that have no direction. Where the kept ones
        have another length, the model has become another one under its name, and they are forgotten.
        """
        encoded = {key: encode(vector) for key, vector in vectors.items()}
        self.add_stored({key: vector for key, vector in encoded.items() if vector is not None})
        return [key for key, vector in encoded.items() if vector is None]

    def add_stored(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors in the form that ``stored`` returns them in."""
        rows = list(vectors.items())
        with self._lock:
            kept = self._db.execute("SELECT vector FROM vectors LIMIT 1").fetchone()
            with self._transaction():
                if rows and kept is not None and dimensions(kept[0]) != dimensions(rows[0][1]):
                    self._db.execute("DELETE FROM vectors")
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def stored(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those of the vectors that there are, as they are stored."""
        found: dict[bytes, bytes] = {}
        for at in range(0, len(hashes), READ_AT_ONCE):
            part = hashes[at : at + READ_AT_ONCE]
            marks = ",".join("?" * len(part))
            with self._lock:
                found |= dict(self._db.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", part))  # noqa: S608
        return found

    def missing(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Return those of the hashes that have no vector, in their order."""
        with self._lock:
            known = {key for (key,) in self._db.execute("SELECT hash FROM vectors")}
        return [key for key in dict.fromkeys(hashes) if key not in known]

    def keep_only(self, hashes: Sequence[bytes]) -> None:
        """Forget sections that are no more, and the vectors of models that were asked before this one."""
        kept = set(hashes)
        with self._lock:
            gone = [(key,) for (key,) in self._db.execute("SELECT hash FROM vectors") if key not in kept]
            if gone:
                with self._transaction():
                    self._db.executemany("DELETE FROM vectors WHERE hash = ?", gone)
        for other in self._file.parent.glob(".vectors-*"):
            if not other.name.startswith(self._file.name):
                other.unlink(missing_ok=True)

    def nearness(self, hashes: Sequence[bytes], query: Sequence[float]) -> dict[bytes, float]:
        """Return, for the sections that have a vector, its cosine with the query's, -1 .. 1."""
        cosine = cosine_with(query)
        if cosine is None:
            return {}
        found: dict[bytes, float] = {}
        for at in range(0, len(hashes), READ_AT_ONCE):
            part = hashes[at : at + READ_AT_ONCE]
            marks = ",".join("?" * len(part))
            with self._lock:
                rows = self._db.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", part).fetchall()  # noqa: S608
            for key, vector in rows:
                near = cosine(vector)
                if near is not None:
                    found[key] = near
        return found
