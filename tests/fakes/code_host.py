"""A code host in memory, told when to fail."""

from msgspec.structs import replace

from service.domain.errors import Conflict, NotFound, ServiceError
from service.ports.code_host import CheckedRepository, NewPullRequest, PullRequest, PullRequestState
from service.ports.docs_source import Source


class FakeCodeHost:
    def __init__(self) -> None:
        self.pull_requests: list[PullRequest] = []  # the newest last
        self.asked: list[NewPullRequest] = []
        self.warnings: tuple[str, ...] = ()  # of a check
        self.errors: list[ServiceError] = []  # raised by the next calls, first to last

    async def check_repository(self, source: Source) -> CheckedRepository:
        if self.errors:
            raise self.errors.pop(0)
        return CheckedRepository(self.warnings)

    async def open_pull_request(self, source: Source, new: NewPullRequest) -> PullRequest:
        if self.errors:
            raise self.errors.pop(0)
        self.asked.append(new)
        for known in self.pull_requests:
            if (known.head, known.base, known.state) == (new.head, new.base, "open"):
                return known
        number = len(self.pull_requests) + 1
        url = f"https://code.example/{source.project_id}/pulls/{number}"
        self.pull_requests.append(PullRequest(number, url, new.head, new.base, new.title, "open", new.draft, new.body))
        return self.pull_requests[-1]

    async def get_pull_request(self, source: Source, number: int) -> PullRequest:
        if self.errors:
            raise self.errors.pop(0)
        if not 1 <= number <= len(self.pull_requests):
            raise NotFound(f"There is no pull request {number}.", code="pull_request_not_found")
        return self.pull_requests[number - 1]

    async def update_pull_request(
        self, source: Source, number: int, *, title: str, body: str, draft: bool | None = None
    ) -> PullRequest:
        known = await self.get_pull_request(source, number)
        if known.state != "open":
            raise Conflict(f"Pull request {number} is {known.state}.", code=f"pull_request_{known.state}")
        self.pull_requests[number - 1] = replace(
            known, title=title, body=body, draft=known.draft if draft is None else draft
        )
        return self.pull_requests[number - 1]

    def end(self, number: int, state: PullRequestState) -> None:
        """A person merged or closed it."""
        self.pull_requests[number - 1] = replace(self.pull_requests[number - 1], state=state)
