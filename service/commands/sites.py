"""Sites: ask for a new index, change who may ask without a key, and change the settings of the widget."""

from eventstore import EventStore, Metadata, execute
from service.domain.sites import ChangeSiteAccess, ChangeSiteWidget, RequestIndex, UpdateSite
from service.domain.widget import WidgetChange
from service.runtime.system import now
from service.streams import SITES


async def request_index(store: EventStore, domain: str, reason: str, metadata: Metadata) -> int:
    """Ask for an index of the site's newest commit. Return the position in the log. Raises NotFound."""
    return (await execute(store, SITES, domain, RequestIndex(reason, now()), metadata=metadata)).position


async def change_site_access(store: EventStore, domain: str, change: ChangeSiteAccess, metadata: Metadata) -> None:
    """Open a site to callers without a key, or close it. Raises NotFound, and Invalid for an origin."""
    await execute(store, SITES, domain, change, metadata=metadata)


async def change_site_widget(store: EventStore, domain: str, change: WidgetChange, metadata: Metadata) -> None:
    """Change how a site's widget presents itself. Raises NotFound, and Invalid for a value that does not fit."""
    await execute(store, SITES, domain, ChangeSiteWidget(change, now()), metadata=metadata)


async def update_site(
    store: EventStore, domain: str, access: ChangeSiteAccess, widget: WidgetChange, metadata: Metadata
) -> None:
    """Change a site's access and widget together. Raises NotFound, and Invalid, when neither is changed."""
    await execute(store, SITES, domain, UpdateSite(access, ChangeSiteWidget(widget, access.now)), metadata=metadata)
