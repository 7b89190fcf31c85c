"""Further instructions with checks: over the sample site of the tests, and over sites of other generators."""

from scripts.agent.cases import Case

SAMPLES = "samples"
"""The corpus that is in this repository, ``tests/samples/site``."""

MORE_CASES = (
    Case(
        "a renamed command",
        SAMPLES,
        "The command `lantern runner` is called `lantern worker` by now. Correct the commands that still say runner;"
        " leave the changelog and the question about the old name as they are.",
        only=("guides/deploy.md", "troubleshooting.md"),
        has={
            "guides/deploy.md": ("lantern worker start --queue emails",),
            "troubleshooting.md": ("`lantern worker start --queue NAME", "## `command not found: lantern runner`"),
        },
        lacks={"guides/deploy.md": ("lantern runner",)},
        lines=4,
    ),
    Case(
        "broken links",
        SAMPLES,
        "Some links of the deployment guide lead nowhere. Repair them.",
        only=("guides/deploy.md",),
        has={"guides/deploy.md": ("(../reference/configuration.md)", "(/guides/idempotency)")},
        lines=8,
    ),
    Case(
        "a new page beside others",
        SAMPLES,
        "Write a page concepts/priorities, listed after the one on queues: a job has a priority from 0 to 9, 9 comes"
        " first, and 5 is the default.",
        only=("concepts/priorities.md", "docs.json"),
        has={"concepts/priorities.md": ("title:", "0", "9", "5"), "docs.json": ('"concepts/priorities"',)},
        lines=16,
    ),
    Case(
        "a page that goes",
        SAMPLES,
        "We no longer document monitoring. Remove that page with everything that leads to it.",
        only=("guides/monitoring.md", "guides/deploy.md", "guides/schedule-jobs.md", "docs.json"),
        lacks={"docs.json": ("guides/monitoring",), "guides/deploy.md": ("/guides/monitoring",)},
        gone=("guides/monitoring.md",),
        lines=120,
    ),
    Case(
        "a heading in other words",
        SAMPLES,
        "On the page on queues, call the section on the dead-letter queue 'Dead jobs'.",
        only=("concepts/queues.md", "concepts/retries.md"),
        has={"concepts/queues.md": ("## Dead jobs",), "concepts/retries.md": ("/concepts/queues#dead-jobs",)},
        lacks={"concepts/queues.md": ("## The dead-letter queue",)},
        lines=4,
    ),
    Case(
        "a row of options",
        SAMPLES,
        "`lantern enqueue` has a new option `--dry-run`, which checks the payload and adds nothing. Add it to the"
        " reference of the command line, as the last one of that command.",
        only=("reference/cli.md",),
        has={"reference/cli.md": ("| `--dry-run` |",)},
        lines=2,
    ),
    Case(
        "a page that moves",
        SAMPLES,
        "Troubleshooting belongs to the guides. Move the page there, with everything that points to it.",
        only=("guides/troubleshooting.md", "troubleshooting.md", "installation.md", "docs.json"),
        has={"docs.json": ('"guides/troubleshooting"',), "installation.md": ("(/guides/troubleshooting)",)},
        gone=("troubleshooting.md",),
        lines=120,
    ),
    Case("a question", SAMPLES, "Document what Lantern costs."),
    Case(
        "a new page in a toctree",
        "click",
        "Write a how-to guide docs/exit-codes.md: a command ends with the code that is given to ctx.exit. List it last"
        " among the how-to guides.",
        only=("docs/exit-codes.md", "docs/index.md"),
        has={"docs/exit-codes.md": ("# ", "ctx.exit"), "docs/index.md": ("support-multiple-versions\nexit-codes\n",)},
        lines=14,
    ),
    Case(
        "a directive",
        "flask",
        "Note, in a note directive after the first example of the page on the shell, that FLASK_APP has to be set.",
        only=("docs/shell.rst",),
        has={"docs/shell.rst": (".. note::", "``FLASK_APP``")},
        lines=6,
    ),
    Case(
        "a link between pages",
        "redux",
        "The FAQ on larger projects should point to the ecosystem page, too, under its documentation.",
        only=("docs/faq/Miscellaneous.md",),
        has={"docs/faq/Miscellaneous.md": ("(../introduction/Ecosystem.md)",)},
        lines=2,
    ),
    Case(
        "a step of a page",
        "vite",
        "On Windows, quoting the path helps as well where a project folder's name has an ampersand. Add that as a third"
        " way to the page on troubleshooting.",
        only=("docs/guide/troubleshooting.md",),
        has={"docs/guide/troubleshooting.md": ("- Quote the path",)},
        lines=2,
    ),
)
