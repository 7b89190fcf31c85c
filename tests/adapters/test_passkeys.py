"""Passkeys as a device in software makes and uses them, and as attackers would."""

import json
import time

import pytest

from service.adapters.sign_in.challenges import Challenges
from service.adapters.sign_in.passkeys import WebauthnPasskeys
from service.domain.errors import Forbidden
from service.ports.sign_in import Origin
from tests.fakes.authenticator import SoftwareDevice

SITE = Origin("https://docs.example.com", "docs.example.com")
ADA = ("person-1", "ada@example.com", "Ada")


@pytest.fixture
def seconds():
    return [1000.0]


@pytest.fixture
def passkeys(seconds):
    return WebauthnPasskeys(Challenges(lambda: seconds[0]))


@pytest.fixture
def device():
    return SoftwareDevice(SITE.url, SITE.host)


async def registered(passkeys, device):
    answer = device.make(await passkeys.registration_options(SITE, ADA, ()))
    return await passkeys.verify_registration(SITE, ADA[0], answer)


async def test_passkey_signs_in_the_person_it_was_made_for(passkeys, device):
    made = await registered(passkeys, device)
    answer = device.sign(await passkeys.sign_in_options(SITE))
    claimed = passkeys.claimed(answer)
    assert (claimed.passkey_id, claimed.person_id) == (made.passkey_id, ADA[0])
    assert await passkeys.verify_sign_in(SITE, made.public_key, made.sign_count, answer) == 0


async def test_options_ask_for_verified_owner_and_stored_key(passkeys, device):
    made = await registered(passkeys, device)
    options = json.loads(await passkeys.registration_options(SITE, ADA, [made.passkey_id]))
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert [one["id"] for one in options["excludeCredentials"]] == [made.passkey_id]
    asked = json.loads(await passkeys.sign_in_options(SITE))
    assert (asked["userVerification"], asked.get("allowCredentials", [])) == ("required", [])


async def test_answer_is_accepted_once(passkeys, device):
    answer = device.make(await passkeys.registration_options(SITE, ADA, ()))
    made = await passkeys.verify_registration(SITE, ADA[0], answer)
    with pytest.raises(Forbidden, match="used already"):
        await passkeys.verify_registration(SITE, ADA[0], answer)
    answer = device.sign(await passkeys.sign_in_options(SITE))
    await passkeys.verify_sign_in(SITE, made.public_key, 0, answer)
    with pytest.raises(Forbidden, match="used already"):
        await passkeys.verify_sign_in(SITE, made.public_key, 0, answer)


async def test_answer_is_accepted_once_by_all_instances(device):
    used = set()

    class Once:
        async def use(self, what, _ends_at):
            is_new = what not in used
            used.add(what)
            return is_new

    one, two = (WebauthnPasskeys(Challenges(time.time, key=b"shared", once=Once())) for _ in range(2))
    answer = device.make(await one.registration_options(SITE, ADA, ()))
    made = await two.verify_registration(SITE, ADA[0], answer)
    with pytest.raises(Forbidden, match="used already"):
        await one.verify_registration(SITE, ADA[0], answer)
    answer = device.sign(await one.sign_in_options(SITE))
    await two.verify_sign_in(SITE, made.public_key, 0, answer)


async def test_challenge_expires_and_is_for_one_purpose(passkeys, device, seconds):
    made = await registered(passkeys, device)
    other = await passkeys.registration_options(SITE, ("person-2", "bob@example.com", "Bob"), ())
    for options in (other, await WebauthnPasskeys().sign_in_options(SITE)):
        with pytest.raises(Forbidden, match="too old"):
            await passkeys.verify_sign_in(SITE, made.public_key, 0, device.sign(options))
    with pytest.raises(Forbidden, match="too old"):
        await passkeys.verify_registration(SITE, ADA[0], SoftwareDevice(SITE.url, SITE.host).make(other))
    late = device.sign(await passkeys.sign_in_options(SITE))
    seconds[0] += 301
    with pytest.raises(Forbidden, match="too old"):
        await passkeys.verify_sign_in(SITE, made.public_key, 0, late)


@pytest.mark.parametrize("wrong", ["origin", "host", "owner", "key", "counter"])
async def test_sign_in_that_proves_nothing_is_refused(passkeys, device, wrong):
    made = await registered(passkeys, device)
    known = 0
    if wrong == "origin":
        device.origin = "https://docs.example.com.attacker.example"
    elif wrong == "host":
        device.host = "attacker.example"
    elif wrong == "owner":
        device.verifies = False
    elif wrong == "key":
        device.key = SoftwareDevice(SITE.url, SITE.host).key
    else:
        device.count, known = 5, 6
    answer = device.sign(await passkeys.sign_in_options(SITE))
    with pytest.raises(Forbidden, match="could not be verified"):
        await passkeys.verify_sign_in(SITE, made.public_key, known, answer)


async def test_passkey_without_verified_owner_is_not_registered(passkeys, device):
    device.verifies = False
    with pytest.raises(Forbidden, match="could not be verified"):
        await registered(passkeys, device)


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"{}", b"[]", b"\xff", b'{"response": 5}', b'{"response": {"clientDataJSON": 5}}',
        b'{"response": {"clientDataJSON": "e30"}}', b"[" * 100_000, b" " * 70_000,
    ],
)  # fmt: skip
async def test_nonsense_is_refused(passkeys, answer):
    with pytest.raises(Forbidden):
        await passkeys.verify_registration(SITE, ADA[0], answer)
    with pytest.raises(Forbidden):
        passkeys.claimed(answer)
