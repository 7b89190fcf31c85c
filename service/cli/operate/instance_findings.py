"""The instances that serve a log in PostgreSQL, for ``docsmith doctor``: which leads, and which is home."""

from collections.abc import Iterator, Sequence

from service.cli.operate.surroundings import Finding
from service.ports.shared.instances import LEASE_SECONDS, Peer
from service.queries.installation import explain_homes
from service.runtime.hosted_place import HostedPlace
from service.views.projects import ProjectView

_AGAIN = "docsmith health   # on each instance, if it is still so in half a minute"


def look_at_instances(peers: Sequence[Peer], place: HostedPlace, projects: Sequence[ProjectView]) -> Iterator[Finding]:
    """``peers`` as one look finds them: one that was killed is among them until its lease of 15 s has ended."""
    serving = sorted((peer for peer in peers if peer.url), key=lambda peer: peer.url)
    if not serving:
        yield Finding("instances", "note", "None serves this log now.", "docsmith serve")
        return
    for peer in serving:
        roles = ["leads"] * peer.leads + ["is home to the embedded code host"] * (peer.is_home and not place.is_shared)
        does = " and ".join(roles) or "is alive"
        yield Finding("instance", "ok", f"{peer.url} (version {peer.version}) {does}.")
    if not any(peer.leads for peer in serving):
        says = (
            f"None leads: no webhooks are sent and no repositories polled. Another takes over in {LEASE_SECONDS:.0f} s."
        )
        yield Finding("leader", "wrong", says, _AGAIN)
    if (why := explain_homes(serving)) is not None:
        yield Finding("home", "wrong", why, "[instances] home in docsmith.toml of each instance")
    needs_home = not place.is_shared and any(project.code_host == "local" for project in projects)
    if needs_home and not any(peer.is_home for peer in serving):
        says = "No instance that is alive has the repositories of the embedded code host: jobs of its projects wait."
        yield Finding("home", "wrong", says, "docsmith serve   # on the data folder with hosted/")
