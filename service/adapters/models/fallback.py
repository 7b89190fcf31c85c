"""A model with others as fallbacks while it is down."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence

from service.adapters.models.failures import MODEL_KEY_REFUSED
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.ports.model import Model, ModelChunk, ModelRequest, ModelWaiting, Price, open_reply, without_prompt

AVOIDED_SECONDS = 60.0
"""How long a model that failed is asked last, so that not every call waits for what is down."""
MAX_AVOIDED_SECONDS = 600.0
"""At the most, whatever its provider says of when to come back."""


class FallbackModel:
    """The first of its models that answers.

    Another one is asked when a model is down, overloaded or refuses our key, and has not begun to answer; never when it
    refuses the request, for what one provider's rules forbid is not to be asked of another.
    """

    def __init__(self, models: Sequence[Model], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._models = tuple(models)
        self._clock = clock
        self._avoided_until = [0.0] * len(self._models)

    @property
    def name(self) -> str:
        """Name of the model that is asked first; a reply's end names the one that answered."""
        return self._models[0].name

    async def window_tokens(self) -> int | None:
        """Return the smallest window, so that a prompt fits every model, and is the same for each."""
        known = [tokens for model in self._models if (tokens := await model.window_tokens()) is not None]
        return min(known, default=None)

    async def price(self) -> Price | None:
        """Return the highest price, since any of the models may answer; None where one is not known."""
        known = [await model.price() for model in self._models]
        prices = [price for price in known if price is not None]
        if len(prices) < len(known):
            return None
        return Price(max(price.input_usd for price in prices), max(price.output_usd for price in prices))

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        errors: list[ServiceError] = []
        for at in self._order():
            has_begun = False
            if errors and request.before_retry is not None:
                await request.before_retry()
            try:
                async with open_reply(self._models[at], request) as chunks:
                    async for chunk in chunks:
                        if not has_begun and not isinstance(chunk, ModelWaiting):
                            has_begun, request = True, without_prompt(request)
                        yield chunk
                self._avoided_until[at] = 0.0
                return
            except (Unavailable, Forbidden) as error:
                if has_begun or (isinstance(error, Forbidden) and error.code != MODEL_KEY_REFUSED):
                    raise
                self._avoid(at, error)
                errors.append(error)
        raise _joined(errors)

    def _order(self) -> list[int]:
        now = self._clock()
        return sorted(range(len(self._models)), key=lambda at: self._avoided_until[at] > now)

    def _avoid(self, at: int, error: ServiceError) -> None:
        said = error.retry_after_seconds if isinstance(error, Unavailable) else None
        self._avoided_until[at] = self._clock() + min(MAX_AVOIDED_SECONDS, max(AVOIDED_SECONDS, said or 0.0))


def _joined(errors: Sequence[ServiceError]) -> ServiceError:
    """One error for all: it may pass if any of them may."""
    message = "; and ".join(str(error) for error in errors)
    passing = next((error for error in errors if isinstance(error, Unavailable)), None)
    if passing is None:
        return Forbidden(message, code=errors[0].code)
    return type(passing)(message, code=passing.code, retry_after_seconds=passing.retry_after_seconds)
