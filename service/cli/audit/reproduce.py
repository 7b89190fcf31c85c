"""``docsmith audit reproduce``: a job's commits made again from the log, and compared by their ids."""

import click

from service.cli.audit.reading import reading
from service.cli.jobs import organization_of_jobs, the_job
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, Output
from service.cli.parsing import Options, command
from service.cli.runtime import Runtime
from service.streams import JOBS
from service.workers.reproduction import Reproduced, reproduced


@command(
    "reproduce",
    does="make a job's commits again from the log and compare their ids",
    more="It asks no model, writes nothing into the repository or our clone of it, and works for a job whose"
    " personal data was erased. It exits with 3 when an id differs, with 1 when the commit that a job began from is"
    " not available any more.",
    examples=["audit reproduce 0000beef", "audit reproduce ID ANOTHER_ID --json"],
)
@click.argument("jobs", nargs=-1, required=True, metavar="JOB", help="the id of a job, or a part of it; or several")
@organization_of_jobs
async def reproduce(runtime: Runtime, options: Options, output: Output) -> int:
    named = [job.removeprefix(f"{JOBS.category}-") for job in options.jobs]
    ids = list(dict.fromkeys([(await the_job(runtime, job, options.organization)).id for job in named]))
    found: list[Reproduced] = []
    async with reading(runtime.data, "audit reproduce", {"jobs": " ".join(ids)}) as (store, through):
        for done, job_id in enumerate(ids, 1):
            found.append(await reproduced(store, runtime.views, job_id, through, runtime.scratch_docs))
            output.progress("reproducing", done, len(ids))
            output.line(_text(found[-1]))
    same = None if any(one.same is None for one in found) else all(one.same for one in found)
    if any(one.same is False for one in found):
        same = False
    output.result({"same": same, "jobs": found}, "")
    return VERIFICATION_FAILED if same is False else FAILED if same is None else DONE


def _text(job: Reproduced) -> str:
    erased = " (what people typed into it has been erased; what it changed is still recorded)" if job.erased else ""
    if not job.commits and job.problem is None:
        return f"job {job.id}: it made no commit, so there is nothing to reproduce{erased}"
    says = {True: "the same", False: "NOT the same", None: "unknown"}[job.same]
    lines = [f"job {job.id}: {says}{erased}"]
    for one in job.commits:
        verdict = "same" if one.same else one.problem or "differs"
        pushed = "" if one.pushed else ", not pushed"
        lines.append(f"  {one.commit}  on {one.parent[:12]}, {one.files} files{pushed}: {verdict}")
    if job.problem is not None:
        lines.append(f"  {job.problem}")
    return "\n".join(lines)
