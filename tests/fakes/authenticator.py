"""A passkey device in software: it answers options as a browser with such a device does (WebAuthn Level 3)."""

import hashlib
import json
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

PRESENT, VERIFIED, WITH_KEY = 0x01, 0x04, 0x40


class SoftwareDevice:
    """One passkey. ``verifies``: whether it confirms its owner; ``count``: its counter, 0 for none."""

    def __init__(self, origin: str, host: str) -> None:
        self.origin, self.host = origin, host
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = hashlib.sha256(str(id(self.key)).encode()).digest()
        self.handle = b""
        self.verifies = True
        self.count = 0

    def make(self, options: str) -> bytes:
        asked = json.loads(options)
        self.handle = _decoded(asked["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(key)
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": self._data(WITH_KEY) + attested})
        return self._answer(
            {
                "clientDataJSON": _encoded(self._client_data("webauthn.create", asked["challenge"])),
                "attestationObject": _encoded(made),
            }
        )

    def sign(self, options: str) -> bytes:
        asked = json.loads(options)
        if self.count:
            self.count += 1
        client, data = self._client_data("webauthn.get", asked["challenge"]), self._data()
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer(
            {
                "clientDataJSON": _encoded(client),
                "authenticatorData": _encoded(data),
                "signature": _encoded(signature),
                "userHandle": _encoded(self.handle),
            }
        )

    def _data(self, flags: int = 0) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies else 0)
        return hashlib.sha256(self.host.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}).encode()

    def _answer(self, response: dict[str, Any]) -> bytes:
        return json.dumps(
            {"id": _encoded(self.id), "rawId": _encoded(self.id), "type": "public-key", "response": response}
        ).encode()


def _encoded(part: bytes) -> str:
    return urlsafe_b64encode(part).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
