"""Signed checkpoints that were kept elsewhere, as options of the commands that check something with them."""

from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from service.cli.parsing import FILE, together
from service.integrity.checkpoints import SignedCheckpoint, key_text

kept_checkpoint_options = together(
    click.option(
        "--checkpoint",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="a signed checkpoint that was kept, or several, one on each line",
    ),
    click.option("--public-key", type=FILE, metavar="FILE", help="the key that they must be signed with"),
)


def signature_problem(file: Path, one: SignedCheckpoint, expected: Ed25519PublicKey | None) -> str | None:
    """What is wrong with a checkpoint's signature; without a key, that in the checkpoint counts."""
    where = f"the checkpoint of position {one.position} in {file}"
    if expected is not None and one.public_key != key_text(expected):
        return f"{where} was signed with another key"
    if not one.is_signed_with(expected or one.own_key()):
        return f"{where} does not fit its signature"
    return None


def keys_to_compare(given: list[SignedCheckpoint]) -> str:
    """Return what to do when no key was given."""
    keys = ", ".join(sorted({one.public_key for one in given}))
    return f"they were signed with the key that stands in them ({keys}): compare it with the one you know"
