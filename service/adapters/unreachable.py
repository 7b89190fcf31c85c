"""Why a server could not be reached, in words for people."""

import os

import aiohttp


def reason_of(error: BaseException) -> str:
    """Return the reason of a failed connection; without the server's name."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not known"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not trusted on this machine"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number is not None and number > 0 else type(error).__name__
