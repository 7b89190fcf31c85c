"""``docsmith audit verify-export``: check that an export is what the log held, and what was signed of it.

The sums in the manifest show damage. Only the chain of the events, together with a signed checkpoint, shows that they
are those of the log: someone who changes an event and every hash after it cannot sign again.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import MsgspecError, Struct

from eventstore import GENESIS, StoredEvent, log_id_in
from service.cli.audit.kept_checkpoints import kept_checkpoint_options, keys_to_compare, signature_problem
from service.cli.output import DONE, VERIFICATION_FAILED, WRONG_USAGE, Output
from service.cli.parsing import FILE, Options, command
from service.integrity.checkpoints import SignedCheckpoint, read_checkpoints, read_public_key
from service.queries.export_format import Line, Manifest, NotSound, lines_of, read_manifest


class Proof(Struct):
    """The findings so far."""

    events: int = 0
    proven: int = 0
    """Events that a checkpoint covers, by the chain."""
    through: int = 0
    """The last of them."""


@command(
    "verify-export",
    does="check the chain of an export's events, against signed checkpoints too",
    more="It exits with 3 when the export is not sound. Without a checkpoint it finds damage, and changes whose"
    " hashes were not computed again.",
    examples=["audit verify-export export --checkpoint kept.json --public-key kept.pub"],
    works_alone=True,
)
@click.argument("folder", type=FILE, metavar="FOLDER")
@kept_checkpoint_options
async def verify_export(options: Options, output: Output) -> int:
    """Raises Invalid and OSError."""
    if options.public_key is not None and not options.checkpoint:
        output.failed("--public-key needs --checkpoint FILE, whose signature is to be checked with it.", "wrong_usage")
        return WRONG_USAGE
    expected = None if options.public_key is None else read_public_key(options.public_key)
    kept = [(file, one) for file in options.checkpoint for one in read_checkpoints(file)]
    try:
        _require_signatures(kept, expected)
        manifest = read_manifest(options.folder)
        check = _Check(options.folder, manifest, [one for _, one in kept], output)
        proof = await asyncio.to_thread(check.run)
    except NotSound as error:
        output.result({"sound": False, "problem": str(error)}, f"NOT sound: {error}")
        return VERIFICATION_FAILED
    value = {
        "sound": True, "problem": None, "events": proof.events, "files": len(manifest.files),
        "through": manifest.through, "complete": manifest.is_complete, "filters": manifest.filters, "log": manifest.log,
        "head": manifest.files[-1].last_hash if manifest.files else None, "proven": proof.proven,
        "provenThrough": proof.through or None,
    }  # fmt: skip
    output.result(value, "\n".join(_sentences(manifest, proof, kept, has_key=expected is not None)))
    return DONE


def _require_signatures(kept: Sequence[tuple[Path, SignedCheckpoint]], expected: Ed25519PublicKey | None) -> None:
    """Raises NotSound."""
    for file, one in kept:
        if problem := signature_problem(file, one, expected):
            raise NotSound(problem)


def _sentences(
    manifest: Manifest, proof: Proof, kept: Sequence[tuple[Path, SignedCheckpoint]], *, has_key: bool
) -> list[str]:
    ended = "" if manifest.is_complete else "; it was not finished: run the same export again to go on"
    lines = [f"sound: {proof.events} events in {len(manifest.files)} files, to {manifest.through}{ended}"]
    if manifest.filters:
        chosen = ", ".join(f"{name} {value}" for name, value in manifest.filters.items())
        lines.append(f"it was chosen by {chosen}: what was left out cannot be checked")
    if not kept:
        lines.append(
            "no signature was checked, so all of it may have been rewritten: add --checkpoint FILE --public-key FILE"
        )
    else:
        lines.append(f"{proof.proven} of them, up to position {proof.through}, are what the checkpoints signed")
        if not has_key:
            lines.append(keys_to_compare([one for _, one in kept]))
    if manifest.personal:
        lines.append("what people typed is covered in its encrypted form only: the readable text is not proven")
    return lines


class _Check:
    def __init__(
        self, folder: Path, manifest: Manifest, checkpoints: Sequence[SignedCheckpoint], output: Output
    ) -> None:
        self._folder, self._manifest, self._output = folder, manifest, output
        self._checkpoints = checkpoints
        self._hashes: dict[int, set[bytes]] = {}
        for one in checkpoints:
            self._hashes.setdefault(one.position, set()).add(bytes.fromhex(one.hash))
        self._last: StoredEvent | None = None
        self._proof = Proof()
        self._unproven = 0

    def run(self) -> Proof:
        """Raises NotSound."""
        manifest = self._manifest
        for one in self._checkpoints:
            if one.log and one.log != manifest.log:
                raise NotSound(
                    f"a checkpoint is of the log {one.log}, and this is of {manifest.log or 'one without id'}"
                )
        for number in range(1, len(manifest.files) + 1):
            self._file(number)
            self._output.progress("checking", number, len(manifest.files))
        last = 0 if self._last is None else self._last.position
        if manifest.is_complete and not manifest.filters and last != manifest.through:
            raise NotSound(f"it ends at position {last}, and should at {manifest.through}")
        if not manifest.filters and (later := [position for position in self._hashes if position > last]):
            raise NotSound(f"it ends at position {last}, before the checkpoint of position {min(later)}")
        if self._checkpoints and not self._proof.proven:
            raise NotSound("none of its events is covered by a checkpoint that was given")
        return self._proof

    def _file(self, number: int) -> None:
        manifest = self._manifest
        file = manifest.files[number - 1]
        if file.name != f"events-{number:06}.{manifest.kind}":
            raise NotSound(f"{file.name} is not the name of file {number}")
        try:
            content = (self._folder / file.name).read_bytes()
        except FileNotFoundError:
            raise NotSound(f"{file.name} is missing") from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise NotSound(f"{file.name} is not what was written")
        before, first = self._proof.events, None
        for line in lines_of(content, manifest.kind):
            first = line.position if first is None else first
            self._event(line, file.name)
        last = self._last
        if (first, self._proof.events - before) != (file.first_position, file.events) or (
            last is not None and (last.position, last.hash.hex()) != (file.last_position, file.last_hash)
        ):
            raise NotSound(f"{file.name} has other events than the manifest says")

    def _event(self, line: Line, name: str) -> None:
        try:
            event, says_it = line.stored(), line.says_what_is_stored()
        except (ValueError, MsgspecError) as error:
            raise NotSound(f"{name}: position {line.position} cannot be read: {error}") from error
        before, position = self._last, event.position
        last = 0 if before is None else before.position
        if position <= last or (not self._manifest.filters and position != last + 1):
            raise NotSound(f"{name}: position {position} follows {last}")
        if position != last + 1:
            self._unproven = 0  # a checkpoint covers what comes before it only by the events between
        elif event.previous_hash != (GENESIS if before is None else before.hash):
            raise NotSound(f"{name}: position {position} does not follow the event before it")
        if not event.is_sound():
            raise NotSound(f"{name}: position {position}: its hash does not fit what is exported")
        if not says_it:
            raise NotSound(
                f"{name}: position {position}: its actor, requestId or causation is not that of its metadata"
            )
        if position == 1 and log_id_in(event.metadata.encode()) != self._manifest.log:
            raise NotSound(f"the manifest names another log than the first event: {self._manifest.log}")
        if self._hashes.get(position - 1, {event.previous_hash}) != {event.previous_hash}:
            raise NotSound(f"{name}: position {position} does not follow the event of the signed checkpoint")
        self._unproven += 1
        self._proof.events += 1
        if (signed := self._hashes.get(position)) is not None:
            if signed != {event.hash}:
                raise NotSound(f"{name}: position {position} is not the event of the signed checkpoint")
            self._proof.proven += self._unproven
            self._proof.through, self._unproven = position, 0
        self._last = event
