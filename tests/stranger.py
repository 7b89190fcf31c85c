"""A stranger's check of a log, its checkpoints and an export, written from service/manual/log-format.md alone."""

import base64
import csv
import hashlib
import io
import json
import sqlite3
import struct
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key


def event_hash(previous, position, stream, version, id_, type_, schema_version, recorded_at, metadata, data, sealed):
    texts = [text.encode() for text in (stream, id_, type_, recorded_at, metadata, data)]
    lengths = [*map(len, texts), -1 if sealed is None else len(sealed), len(b"eventstore-1")]
    numbers = struct.pack(">11q", position, version, schema_version, *lengths)
    return hashlib.sha256(previous + numbers + b"".join(texts) + (sealed or b"") + b"eventstore-1").digest()


def log_hashes(file):
    """The hash of each position, and the log's id."""
    db, previous, log = sqlite3.connect(file), bytes(32), ""
    assert db.execute("PRAGMA application_id").fetchone() == (1165380711,)
    assert db.execute("PRAGMA user_version").fetchone() == (1,), "take the page of that version"
    columns = "position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed, hash"
    hashes = {}
    for *row, stored in db.execute(f"SELECT {columns} FROM events ORDER BY position"):
        assert row[0] == len(hashes) + 1, f"position {row[0]}: a gap"
        previous = hashes[row[0]] = event_hash(previous, *row)
        assert previous == stored, f"position {row[0]}: another hash"
        log = json.loads(row[7]).get("log", "") if row[0] == 1 else log
    return hashes, log


def export_hashes(folder):
    manifest, hashes, previous = json.loads((folder / "manifest.json").read_text()), {}, bytes(32)
    assert (manifest["format"], manifest["filters"]) == ("docsmith-export-2", {})
    for file in manifest["files"]:
        content = (folder / file["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"], f"{file['name']}: another sum"
        is_csv, text = manifest["kind"] == "csv", io.StringIO(content.decode(), newline="")
        rows = csv.DictReader(text) if is_csv else map(json.loads, text.getvalue().split("\n")[:-1])
        for one in rows:
            assert int(one["position"]) == len(hashes) + 1, f"position {one['position']}: a gap"
            assert bytes.fromhex(one["previousHash"]) == previous, f"position {one['position']}: does not follow"
            previous = event_hash(
                previous, int(one["position"]), one["stream"], int(one["streamVersion"]), one["id"], one["type"],
                int(one["schemaVersion"]), one["recordedAt"], one["metadata"], one["data"],
                base64.b64decode(one["sealed"]) if one["sealed"] else None,
            )  # fmt: skip
            assert previous.hex() == one["hash"], f"position {one['position']}: another hash"
            hashes[int(one["position"])] = previous
    return hashes, manifest["log"]


def check(checkpoint, key, hashes, log):
    """``key``: the 32 bytes that are known."""
    one = checkpoint
    assert base64.b64decode(one["publicKey"]) == key, "another key"
    if one["format"] == "docsmith-checkpoint-2":
        lines = ["eventstore checkpoint 2", one["log"], one["position"], one["hash"], one["time"]]
        assert one["log"] == log, "another log"
    else:
        assert one["format"] == "docsmith-checkpoint-1", "take the page of that version"
        lines = ["eventstore checkpoint 1", one["position"], one["hash"], one["time"].replace("Z", "+00:00")]
    text = "".join(f"{line}\n" for line in lines).encode()
    Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(one["signature"]), text)
    assert hashes[one["position"]].hex() == one["hash"], "another event"


if __name__ == "__main__":
    what, checkpoints, pem = map(Path, sys.argv[1:])
    hashes, log = export_hashes(what) if what.is_dir() else log_hashes(what)
    for line in checkpoints.read_text().split("\n")[:-1]:
        check(json.loads(line), load_pem_public_key(pem.read_bytes()).public_bytes_raw(), hashes, log)
    sys.stdout.write(f"sound: {len(hashes)} events\n")
