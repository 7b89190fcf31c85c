"""Passkeys over the ``webauthn`` library (WebAuthn Level 3).

- Keys live on the device and are found by it ("discoverable"), so no one types a name and no list of names leaks.
- The device must confirm its owner (user verification), both when a key is made and when it is used.
- The maker of the device does not matter, so no attestation is asked for.
- The library takes a tenth of a second to import, so it is imported with the first use, on a thread.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from service.adapters.sign_in.challenges import LIFETIME_SECONDS, Challenges
from service.domain.errors import Forbidden
from service.ports.sign_in import NewPasskey, Origin, UsedPasskey

log = structlog.get_logger()

T = TypeVar("T")

MAX_ANSWER_BYTES = 64 * 1024
SIGN_IN = "sign-in"
NAME = "Docsmith"


class WebauthnPasskeys:
    def __init__(self, challenges: Challenges | None = None) -> None:
        self._challenges = challenges or Challenges(time.monotonic)

    async def registration_options(self, origin: Origin, person: tuple[str, str, str], known: Sequence[str]) -> str:
        person_id, email, name = person
        challenge = self._challenges.issue(_registration(person_id))

        def options() -> str:
            import webauthn
            from webauthn.helpers import base64url_to_bytes, structs

            made = webauthn.generate_registration_options(
                rp_id=origin.host,
                rp_name=NAME,
                user_id=person_id.encode(),
                user_name=email,
                user_display_name=name or email,
                challenge=challenge,
                timeout=LIFETIME_SECONDS * 1000,
                authenticator_selection=structs.AuthenticatorSelectionCriteria(
                    resident_key=structs.ResidentKeyRequirement.REQUIRED,
                    user_verification=structs.UserVerificationRequirement.REQUIRED,
                ),
                exclude_credentials=[structs.PublicKeyCredentialDescriptor(base64url_to_bytes(one)) for one in known],
            )
            return webauthn.options_to_json(made)

        return await asyncio.to_thread(options)

    async def verify_registration(self, origin: Origin, person_id: str, answer: bytes) -> NewPasskey:
        challenge = self._fresh(_registration(person_id), answer)

        def verify() -> NewPasskey:
            import webauthn
            from webauthn.helpers import bytes_to_base64url

            made = webauthn.verify_registration_response(
                credential=answer.decode(),
                expected_challenge=challenge,
                expected_rp_id=origin.host,
                expected_origin=origin.url,
                require_user_verification=True,
            )
            return NewPasskey(
                bytes_to_base64url(made.credential_id), bytes_to_base64url(made.credential_public_key), made.sign_count
            )

        return await self._once(challenge, await _proven(verify))

    async def sign_in_options(self, origin: Origin) -> str:
        challenge = self._challenges.issue(SIGN_IN)

        def options() -> str:
            import webauthn
            from webauthn.helpers import structs

            made = webauthn.generate_authentication_options(
                rp_id=origin.host,
                challenge=challenge,
                timeout=LIFETIME_SECONDS * 1000,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            )
            return webauthn.options_to_json(made)

        return await asyncio.to_thread(options)

    def claimed(self, answer: bytes) -> UsedPasskey:
        read = _read(answer)
        passkey_id, handle = read.get("id"), read["response"].get("userHandle")
        if not isinstance(passkey_id, str) or not isinstance(handle, str):
            raise Forbidden(NOT_PROVEN)
        return UsedPasskey(passkey_id, _unpadded(handle).decode("utf-8", "replace"))

    async def verify_sign_in(self, origin: Origin, public_key: str, sign_count: int, answer: bytes) -> int:
        challenge = self._fresh(SIGN_IN, answer)

        def verify() -> int:
            import webauthn

            return webauthn.verify_authentication_response(
                credential=answer.decode(),
                expected_challenge=challenge,
                expected_rp_id=origin.host,
                expected_origin=origin.url,
                credential_public_key=_unpadded(public_key),
                credential_current_sign_count=sign_count,
                require_user_verification=True,
            ).new_sign_count

        return await self._once(challenge, await _proven(verify))

    def _fresh(self, purpose: str, answer: bytes) -> bytes:
        """Return the challenge of an answer, if it is one of ours for this purpose. Raise Forbidden."""
        client_data = _read(answer)["response"].get("clientDataJSON")
        try:
            challenge = _unpadded(json.loads(_unpadded(client_data))["challenge"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Forbidden(NOT_PROVEN) from None
        if not self._challenges.is_valid(purpose, challenge):
            raise Forbidden("This passkey's answer is too old, or was used already. Try again.")
        return challenge

    async def _once(self, challenge: bytes, proven: T) -> T:
        if not await self._challenges.use(challenge):
            raise Forbidden("This passkey's answer was used already. Try again.")
        return proven


NOT_PROVEN = "The passkey could not be verified. Try again, or sign in another way."


def _registration(person_id: str) -> str:
    return f"registration {person_id}"


async def _proven(verify: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(verify)
    except Exception as error:  # the library reads what a stranger sent: whatever it trips over is no proof
        log.info("passkey refused", error=type(error).__name__, reason=str(error)[:300])
        raise Forbidden(NOT_PROVEN) from error


def _read(answer: bytes) -> dict[str, Any]:
    if len(answer) > MAX_ANSWER_BYTES:
        raise Forbidden(NOT_PROVEN)
    try:
        read = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Forbidden(NOT_PROVEN) from None
    if not isinstance(read.get("response"), dict):
        raise Forbidden(NOT_PROVEN)
    return read


def _unpadded(text: object) -> bytes:
    """Decode base64url without padding. Raise Forbidden."""
    try:
        return base64.urlsafe_b64decode(f"{text}{'=' * (-len(str(text)) % 4)}") if isinstance(text, str) else b""
    except ValueError:
        raise Forbidden(NOT_PROVEN) from None
