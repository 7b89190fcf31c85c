"""The identity provider of the settings, and whom it admits."""

import os

from service.adapters.sign_in.oidc import Client, OidcProvider, is_secure
from service.commands.access.credentials import Admits
from service.domain.access.people import small_letters
from service.runtime.settings.settings import OidcSection, listed
from service.runtime.settings.settings_file import BadSettings


def identity_provider(settings: OidcSection) -> tuple[OidcProvider | None, Admits]:
    """Return the provider, None where there is none, and whom it admits. Raise BadSettings: something is missing."""
    if not settings.issuer:
        return None, Admits()
    if not settings.client_id:
        raise BadSettings("[sign_in.oidc] client_id is missing. Write the id of the client that you registered.")
    if not is_secure(settings.issuer):
        raise BadSettings(
            f"[sign_in.oidc] issuer: {settings.issuer} is not secret on its way. Write its https address."
        )
    variable = settings.client_secret_env
    secret = os.environ.get(variable, "") if variable else ""
    if variable and not secret:
        raise BadSettings(
            f"[sign_in.oidc] client_secret_env: the variable {variable} is not set. Set it, or leave the name out."
        )
    domains = frozenset(small_letters(one) for one in listed(settings.viewer_domains))
    admits = Admits(domains, settings.viewer_organization)
    if bool(admits.domains) != bool(admits.organization_id):
        raise BadSettings("[sign_in.oidc] has only one of viewer_domains and viewer_organization. Set both or neither.")
    return OidcProvider(Client(settings.issuer, settings.client_id, secret, settings.name), os.environ), admits
