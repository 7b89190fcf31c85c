"""Values of a project's settings, each in its one form."""

import re
from urllib.parse import unquote, urlsplit

from service.domain.errors import Invalid

DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
"""A domain identifier: a URL path segment that people can read and type."""


def checked_domain(domain: str) -> str:
    """Return the domain. Raise Invalid when it is not one."""
    if not DOMAIN.fullmatch(domain):
        raise Invalid(
            "A site name is 1 to 100 lower-case letters, digits, dots and hyphens, such as guide or docs.example.com."
        )
    return domain


def domain_from(name: str) -> str:
    """Return a domain for a project of this name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:100].strip("-.") or "docs"


def name_from(repository: str) -> str:
    """Return a name for a project of this repository: that of its last part, or of the host of an address without."""
    parts = urlsplit(repository)
    last = unquote(parts.path).rstrip("/").rpartition("/")[2] or parts.hostname or ""
    return _PACKED.sub("", last).strip()[:100] or "Documentation"


_PACKED = re.compile(r"(?:[-_](?:main|master))?(?:\.(?:git|zip))?$", re.IGNORECASE)
"""The ends that code hosts add to the name of a repository."""


def checked_repository(repository: str) -> str:
    """Return the repository. Raise Invalid when it is no URL or path, or holds credentials."""
    if not repository or len(repository) > 2000 or not repository.isprintable():
        raise Invalid("The repository is not valid: give a URL or a path of at most 2000 printable characters.")
    if re.match(r"[a-z+]+://[^/]*@", repository, re.IGNORECASE):
        raise Invalid("Put no credentials into the repository URL; name the variable that holds the token instead.")
    return repository


def public_repository(repository: str, project_id: str) -> str:
    """Return a repository's address as callers of the API see it: a URL as it is, and for a folder on the server, whose
    path is not theirs to know, where the service itself serves it, below its own address.
    """
    return repository if re.match("https?://", repository, re.IGNORECASE) else f"hosted/{project_id}.git"


def checked_folder(folder: str) -> str:
    """Return the folder as a path without outer slashes. Raise Invalid when it leads out of the repository."""
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or any(part.lower() == ".git" or not part.isprintable() for part in parts):
        raise Invalid(f"The documentation folder {folder!r} is not valid: give a path inside the repository.")
    return "/".join(parts)


def checked_variable(name: str) -> str:
    """Return the name. Raise Invalid when no environment variable can have it."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise Invalid("Give the name of an environment variable, not a token.")
    return name


def checked_api_url(url: str) -> str:
    """Return the address without its last slash. Raise Invalid when it is not valid."""
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or not url.isprintable() or len(url) > 2000:
        raise Invalid("The address of an API is an https:// URL, such as https://git.example.com/api/v4.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise Invalid("The address of an API has no credentials, no ? and no # in it.")
    return url.rstrip("/")


def checked_site_url(url: str) -> str:
    """Return the address of a published site without its last slash. Raise Invalid when it is not valid."""
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or not url.isprintable() or len(url) > 2000:
        raise Invalid(f"The address of a site is an https:// URL, such as https://docs.example.com; {url!r} is not.")
    if "@" in parts.netloc or parts.query or parts.fragment or re.search(r"[\s\"'<>\\]", url):
        raise Invalid("The address of a site has no credentials, no spaces, no ? and no # in it. Leave them out.")
    return url.rstrip("/")


def checked_app(app_id: str) -> str:
    """Return the number of an App, or its client id: GitHub accepts either. Raise Invalid for others."""
    if app_id and not re.fullmatch(r"[A-Za-z0-9.]{1,40}", app_id):
        raise Invalid("The id of a GitHub App is a number, or begins with Iv; its settings page shows it.")
    return app_id


def checked_label(label: str) -> str:
    """Return the label without outer space. Raise Invalid when it is not one."""
    label = label.strip()
    if not label or len(label) > 100 or not label.isprintable() or "," in label:
        raise Invalid(f"The label {label!r} is not valid: use 1 to 100 printable characters without a comma.")
    return label


def checked_reviewer(name: str) -> str:
    """Return the name without ``@``. Raise Invalid when no account or team can have it."""
    name = name.strip().removeprefix("@")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?", name):
        raise Invalid(f"The reviewer {name!r} is not valid: give the name of an account, or organization/team.")
    return name
