"""Pull requests that people may comment on, and jobs with comments to answer; for the workers."""

from msgspec import Struct

from eventstore import Views


class OpenPullRequest(Struct, frozen=True):
    organization_id: str
    project_id: str
    number: int


async def open_pull_requests(views: Views) -> list[OpenPullRequest]:
    """Return the pull requests of all jobs that are open as far as the log says, each once."""
    return await _open(views, "", ())


async def open_pull_request(views: Views, project_id: str, number: int) -> list[OpenPullRequest]:
    """Return the one of a project with this number, if it is a job's and open."""
    return await _open(views, " AND project_id = ? AND number = ?", (project_id, number))


async def open_pull_request_of_job(views: Views, job_id: str) -> list[OpenPullRequest]:
    """Return the one of a job, if it is open."""
    return await _open(views, " AND job_id = ?", (job_id,))


async def _open(views: Views, condition: str, params: tuple[str | int, ...]) -> list[OpenPullRequest]:
    rows = await views.query(
        "SELECT DISTINCT organization_id, project_id, number FROM reviews WHERE is_open"  # noqa: S608  (our conditions)
        f"{condition} ORDER BY project_id, number",
        params,
    )
    return [OpenPullRequest(*row) for row in rows]


async def jobs_with_unanswered_comments(views: Views, job_id: str | None = None) -> list[tuple[str, str]]:
    """Return the ids of the jobs, and of their organizations; with an id only that job's, if it has any."""
    rows = await views.query(
        "SELECT DISTINCT job_id, organization_id FROM unanswered_comments JOIN reviews USING (job_id)"
        " WHERE job_id = coalesce(?, job_id)",
        (job_id,),
    )
    return [(row[0], row[1]) for row in rows]
