"""Parameters of a request's query."""

from aiohttp import web

from service.domain.errors import Invalid


def of_query(request: web.Request, name: str) -> str | None:
    """The value of a parameter, or None. Raises Invalid when it comes twice: nobody can say which counts."""
    values = request.query.getall(name, [])
    if len(values) > 1:
        raise Invalid(f"The query's {name} comes once.", problems=((f"?{name}", "comes once"),))
    return values[0] if values else None
