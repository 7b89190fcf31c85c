"""Folders that run several instances over PostgreSQL: with Docker Compose, or in Kubernetes."""

import re
import secrets
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from service import __version__
from service.cli.setup.recipes import filled
from service.domain.errors import Conflict

PRIVATE, READABLE, RUNNABLE = 0o700, 0o644, 0o755
SECRET_FILE = 0o444
"""For the users in the containers, which differ from the one who runs the command; their folder is that one's alone."""


class Deployment(Struct, frozen=True):
    folder: str
    """The folder of its files below ``service/deploy``, and the beginning of the name of the folder that is made."""
    log: str
    """The host of the log's database."""
    vault: str
    proxies: str
    """The ``trusted_proxies``."""
    next_steps: str

    @property
    def made(self) -> Path:
        return Path(f"docsmith-{self.folder}")


COMPOSE = Deployment(
    "compose",
    "log",
    "vault",
    '"172.30.80.0/24"',
    "next: put the service's address in .env, copy the program beside it, and run docker compose up --build --wait",
)
KUBERNETES = Deployment(
    "kubernetes",
    "docsmith-log",
    "docsmith-vault",
    '"10.0.0.0/8"',
    "next: name your image and your address as kustomization.yaml says, and run kubectl apply --kustomize .",
)


def write_deployment(deployment: Deployment, folder: Path, program: str) -> list[str]:
    """Write all files of a deployment into a new folder, and return their names. Raise Conflict where it is there."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Conflict(f"{folder} is there already, and stays as it is; name another one with --to DIR.") from None
    (folder / "secrets").mkdir(mode=PRIVATE)
    texts = {**_texts(deployment, program), **_secrets(deployment)}
    for name, text in texts.items():
        file = folder / name
        file.write_text(text, encoding="utf-8")
        file.chmod(_mode(name))
    return sorted(texts)


def _mode(name: str) -> int:
    if name.startswith("secrets/"):
        return SECRET_FILE
    if name == "keys.env":
        return 0o600
    return RUNNABLE if name.endswith(".sh") else READABLE


def _texts(deployment: Deployment, program: str) -> Mapping[str, str]:
    root = resources.files("service") / "deploy"
    common = ("docsmith.toml", "keys.env", "gitignore")
    files = {
        **{name: root / name for name in common},
        **{one.name: one for one in (root / deployment.folder).iterdir()},
    }
    words = {"version": __version__, "program": program, "proxies": deployment.proxies, "keys": "keys.env"}
    texts = {_DOTTED.get(name, name): _filled(file.read_text("utf-8"), words) for name, file in files.items()}
    return texts | {"Containerfile": filled("Containerfile")}


_DOTTED = {"gitignore": ".gitignore", "env": ".env"}
"""Names in the package, where a file that begins with a dot is easily overlooked."""


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"(?<!\$)\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def _secrets(deployment: Deployment) -> Mapping[str, str]:
    """Return a new password for each database, the addresses with them, and what instances share beside them."""
    made = {"secrets/vault-secret": f"{secrets.token_hex(32)}\n"}
    for name, host, database in (("log", deployment.log, "docsmith"), ("vault", deployment.vault, "docsmith_keys")):
        password = secrets.token_urlsafe(32)
        made[f"secrets/{name}-password"] = password
        made[f"secrets/{name}-address"] = f"postgresql://docsmith:{quote(password, safe='')}@{host}/{database}\n"
    return made
