"""Values of settings that others wrote, of the type that is wanted."""

from collections.abc import Mapping

from service.retrieval.site.layout import MAX_FACT


def text_setting(settings: Mapping[str, object], name: str) -> str:
    """Return a text in its first ``MAX_FACT`` characters, without lone surrogates; empty where there is none."""
    value = settings.get(name)
    return value.encode("utf-8", "replace").decode()[:MAX_FACT] if isinstance(value, str) else ""
