"""The names of a job: the title from what was asked for, and the branch from the title."""

from service.domain.jobs.events import Message


def title_from(messages: tuple[Message, ...]) -> str:
    """Return the first line with words of the last user message (else of any), at most 80 characters."""
    texts = [m.content for m in messages if m.role == "user"][::-1] + [m.content for m in messages]
    lines = (
        "".join(c if c.isprintable() else " " for c in line).strip() for text in texts for line in text.splitlines()
    )
    line = next(filter(None, lines), "Update documentation")
    return line if len(line) <= 80 else line[:79].rstrip() + "…"


def branch_for(job_id: str, title: str) -> str:
    """Return ``docs/<words of the title>-<part of the job id>``: the same for the same job, so a repeat finds it."""
    words: list[str] = []
    for word in "".join(c.lower() if c.isascii() and c.isalnum() else " " for c in title).split():
        if sum(map(len, words)) + len(words) + len(word) > 40:
            break
        words.append(word)
    return f"docs/{'-'.join([*words, job_id.replace('-', '')[-8:]])}"
