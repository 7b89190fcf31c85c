"""Sites from files in memory."""

from collections.abc import Mapping

from service.domain.sites import Skipped
from service.retrieval.readers.markdown import parse_page
from service.retrieval.site.navigation import Site, detect_layout, make_site


def read_site(files: Mapping[str, bytes], *, docs_folder: str = "") -> Site:
    """Return the site of the files; those that cannot be read are not in it."""
    layout = detect_layout(files, files.get, docs_folder=docs_folder)
    parsed = (parse_page(data, path, layout.dialect) for path, data in files.items() if layout.is_page(path))
    return make_site(layout, (page for page in parsed if not isinstance(page, Skipped)), files)
