"""Webhooks as the code hosts send them: bodies and headers after their documentation, signed as each of them does."""

import hashlib
import hmac
import json
from datetime import datetime
from pathlib import Path

from multidict import CIMultiDict

from service.domain.hooks.webhooks import signature

SAMPLES = Path(__file__).parent.parent / "samples" / "hooks"


def sample(name, **changes):
    """The headers and the body of a sample, the body's fields changed."""
    stored = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return CIMultiDict(stored["headers"]), json.dumps({**stored["body"], **changes}).encode()


def hex_of(secret, body):
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def signed_by_github(headers, body, secret):
    return CIMultiDict({**headers, "X-Hub-Signature-256": f"sha256={hex_of(secret, body)}"})


def signed_by_gitea(headers, body, secret):
    signed = signed_by_github(headers, body, secret)
    signed["X-Gitea-Signature"] = signed["X-Gogs-Signature"] = hex_of(secret, body)
    return signed


def signed_by_forgejo(headers, body, secret):
    return CIMultiDict({**headers, "X-Forgejo-Signature": hex_of(secret, body)})


def with_gitlabs_token(headers, _body, secret):
    return CIMultiDict({**headers, "X-Gitlab-Token": secret})


def signed_by_gitlab(headers, body, secret, *, at: datetime):
    timestamp = int(at.timestamp())
    message_id = headers["Idempotency-Key"]
    return CIMultiDict({
        **headers, "webhook-id": message_id, "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, message_id, timestamp, body),
    })  # fmt: skip


SIGNED = {
    "github": signed_by_github,
    "gitea": signed_by_gitea,
    "forgejo": signed_by_forgejo,
    "gitlab": with_gitlabs_token,
}


def signed(name, secret, **changes):
    """A sample as its host sends it."""
    headers, body = sample(name, **changes)
    return SIGNED[name.split("-", maxsplit=1)[0]](headers, body, secret), body
