"""For each instruction, what a good model would do with it: its calls of the tools, one reply after the other.

The first replies look, the others write; each copies only what the replies before it have shown. At the end of each the
player has the work checked, and finishes it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Call = tuple[str, dict[str, Any]]
Reply = tuple[Call, ...]


class Play(Struct, frozen=True):
    replies: tuple[Reply, ...]
    facts: tuple[str, ...] = ()
    """Texts that the prompt must have at the first call that writes, besides those that the calls replace."""
    question: str = ""
    """The question that it ends with, where it cannot do the task."""


def search(query: str, folder: str = "") -> Call:
    return "search", {"query": query, **({"folder": folder} if folder else {})}


def exactly(text: str) -> Call:
    return "search", {"query": text, "exact": True}


def read(path: str, start: int = 1, end: int | None = None) -> Call:
    return "read", {"path": path, "start_line": start, **({} if end is None else {"end_line": end})}


def replace(path: str, old: str, new: str, *, line: int | None = None) -> Call:
    return "replace", {"path": path, "old": old, "new": new, **({} if line is None else {"line": line})}


def insert(path: str, text: str, after: int | None = None) -> Call:
    return "insert", {"path": path, "text": text, **({} if after is None else {"after_line": after})}


def write(path: str, text: str) -> Call:
    return "write", {"path": path, "text": text}


def move(path: str, to: str) -> Call:
    return "move", {"path": path, "to": to}


def delete(path: str) -> Call:
    return "delete", {"path": path}


BROKEN: Call = ("check_links", {"changed": True})
ALL_BROKEN: Call = ("check_links", {})


def redirect(old: str, new: str) -> Call:
    """Add a redirect to the first place of Mintlify's list."""
    entry = f'    {{\n      "source": "{old}",\n      "destination": "{new}"\n    }},\n'
    return insert("redirects.json", entry, 1)


def simple(query: str, path: str, old: str, new: str, *facts: str) -> Play:
    """Find, read, replace once."""
    return Play(((search(query),), (read(path),), (replace(path, old, new),)), facts)


def nothing(query: str, *paths: str, question: str = "") -> Play:
    """Look, and change nothing."""
    return Play(((search(query),), *(((*map(read, paths),),) if paths else ())), question=question)


K8S = "content/en/docs/tasks/run-application/delete-stateful-set.md"
SCALE = "content/en/docs/tasks/run-application/scale-stateful-set.md"
REPLICATED = "content/en/docs/tasks/run-application/run-replicated-stateful-application.md"
DEBUG = "content/en/docs/tasks/debug-application-cluster/debug-stateful-set.md"
SECRET = "content/en/docs/tasks/configmap-secret/managing-secret-using-kubectl.md"
OLD_URL, NEW_URL = (
    "/docs/tasks/run-application/delete-stateful-set/",
    "/docs/tasks/run-application/remove-stateful-set/",
)
UPGRADE = "content/kb/FAQ/upgrade-version-streamlit.md"
CAMERA = "content/kb/FAQ/enable-camera.md"
RENAME = "content/deploy/community-cloud/manage-your-app/rename-your-app.md"
ALIAS = "website/docs/reference/resource-configs/alias.md"
FIREFOX = "- [Firefox](https://support.mozilla.org/en-US/kb/how-manage-your-camera-and-microphone-permissions)\n"
WITHIN = "respond to all messages within"
CAUTION = """:::caution Heads up!
This is a work in progress document. While this configuration applies to multiple resource types, the documentation has only been written for seeds.

:::

"""  # noqa: E501  a line of the page
COLOR_CARD = """<Card title="Color" icon="palette" href="/components/color">
  Display color swatches with hex values.
</Card>

"""

PLAYS: Mapping[str, Play] = {
    # Over cases.py
    "replace in a page": simple(
        "support response time", "contact-support.mdx", f"{WITHIN} 24 hours", f"{WITHIN} 12 hours"
    ),
    "replace in every page": simple(
        "officially-supported environment manager",
        UPGRADE,
        "officially-supported environment manager",
        "recommended environment manager",
    ),
    "replace in a long page": simple(
        "delete the associated headless service separately",
        K8S,
        "delete the associated headless service separately",
        "remove the headless service separately",
    ),
    "add to the end": Play(
        ((read(CAMERA),), (insert(CAMERA, "- [Opera](https://help.opera.com/en/)\n"),)), ("- [Firefox](",)
    ),
    "add under a heading": simple(
        "subscribe to status updates",
        "status.mdx",
        "3. Select your preferred notification method (email, RSS, or RSS via Slack).\n",
        "3. Select your preferred notification method (email, RSS, or RSS via Slack).\n\n"
        "Status updates are kept for 400 days.\n",
    ),
    "add under a heading of many": Play(
        (
            (read("website/docs/dbt-cli/installation.md", 20, 36),),
            (insert("website/docs/dbt-cli/installation.md", "\nHomebrew installs the newest version only.\n", 32),),
        ),
        ("brew upgrade dbt", "### Installing different versions with Homebrew"),
    ),
    "create a page": Play(
        (
            (("list", {"folder": "content/en/docs/tasks/run-application"}), read(K8S)),
            (
                write(
                    "content/en/docs/tasks/run-application/pause-stateful-set.md",
                    "---\ntitle: Pause a StatefulSet\ncontent_type: task\n---\n\nA StatefulSet cannot be paused.\n",
                ),
            ),
        ),
        ("content_type: task",),
    ),
    "create a page of a site with navigation": Play(
        (
            (search("deploy/monorepo"), read("deploy/monorepo.mdx", 1, 12)),
            (read("docs.json", 155, 168),),
            (
                write("deploy/zeppelin.mdx", '---\ntitle: "Zeppelin"\n---\n\nDeploy to a Zeppelin host.\n'),
                replace(
                    "docs.json",
                    '"deploy/multi-repo"\n',
                    '"deploy/multi-repo",\n                      "deploy/zeppelin"\n',
                ),
            ),
        ),
        ("title:",),
    ),
    "rename a page": Play(
        (
            (search("advanced-support"), read("advanced-support.mdx", 1, 12)),
            (move("advanced-support.mdx", "premium-support.mdx"), BROKEN, read("redirects.json", 1, 6)),
            (redirect("/advanced-support", "/premium-support"),),
        )
    ),
    "rename a page that others link to": Play(
        (
            (read(K8S, 1, 12),),
            (move(K8S, K8S.replace("delete-", "remove-")), BROKEN),
            (
                replace(SCALE, OLD_URL, NEW_URL),
                replace(REPLICATED, OLD_URL, NEW_URL),
                replace(DEBUG, OLD_URL, NEW_URL),
            ),
            (BROKEN,),
        )
    ),
    "two instructions": Play(
        (
            (read(ALIAS),),
            (
                replace(ALIAS, "work in progress document", "draft"),
                insert(ALIAS, "\nAliases have at most 63 characters.\n"),
            ),
        )
    ),
    "text that is not there": nothing("within 99 fortnights", "contact-support.mdx"),
    "a fact in words": simple(
        "contact support answer hours", "contact-support.mdx", f"{WITHIN} 24 hours", f"{WITHIN} 12 hours"
    ),
    "a new sentence in words": simple(
        "contact support by phone",
        "contact-support.mdx",
        "open a support chat.\n",
        "open a support chat. There is no support by phone.\n",
    ),
    "a list item": simple(
        "status page shows status of services",
        "status.mdx",
        "- **Dashboard** - The Mintlify dashboard and management interface\n",
        "- **Dashboard** - The Mintlify dashboard and management interface\n- **Assistant** - The AI assistant\n",
        "- **Updates** - Documentation update and deployment services",
    ),
    "front matter": simple("delete a StatefulSet", K8S, "weight: 60", "weight: 65", "title: Delete a StatefulSet"),
    "a shortcode": Play(
        (
            (exactly("{{< caution >}}"), read(K8S)),
            (
                replace(
                    K8S,
                    "## Deleting a StatefulSet\n",
                    "## Deleting a StatefulSet\n\n{{< caution >}}\nThe volumes of a deleted StatefulSet stay.\n"
                    "{{< /caution >}}\n",
                ),
            ),
        ),
        ("{{< caution >}}",),
    ),
    "a list of reviewers": simple("deleting a StatefulSet", K8S, "- foxish\n", "", "reviewers:"),
    "a code block": Play(
        (
            (search("managing secrets using kubectl username.txt"),),
            (read(SECRET),),
            (
                replace(SECRET, "echo -n 'admin' > ./username.txt", "echo -n 'kite' > ./username.txt"),
                replace(SECRET, "username:    5 bytes", "username:    4 bytes"),
                replace(SECRET, '"username":"YWRtaW4="', '"username":"a2l0ZQ=="'),
            ),
        )
    ),
    "a link in words": simple(
        "allow camera access browser",
        CAMERA,
        FIREFOX,
        f"{FIREFOX}- [Opera](https://help.opera.com/en/)\n",
    ),
    "a step of a list": simple(
        "delete rename redeploy app",
        RENAME,
        "1. Delete your app.\n1. Make",
        "1. Export your app's secrets.\n1. Delete your app.\n1. Make",
    ),
    "a keyword": simple(
        "rename GitHub coordinates", RENAME, "access control, coordinates\n", "access control, coordinates, move\n"
    ),
    "a term throughout a page": Play(
        (
            (search("upgrade to the latest version of Streamlit"),),
            (read(UPGRADE),),
            (
                replace(UPGRADE, "the latest official release", "the newest official release"),
                replace(UPGRADE, "upgrade to the latest version, here's", "upgrade to the newest version, here's"),
                replace(
                    UPGRADE,
                    "Streamlit, and verify you have the latest version:\n\n```bash\npipenv",
                    "Streamlit, and verify you have the newest version:\n\n```bash\npipenv",
                ),
                replace(
                    UPGRADE,
                    "conda environment and verify you have the latest",
                    "conda environment and verify you have the newest",
                ),
                replace(
                    UPGRADE,
                    "to get the latest version of Streamlit with",
                    "to get the newest version of Streamlit with",
                ),
                replace(
                    UPGRADE,
                    "and verify you have the latest version, run",
                    "and verify you have the newest version, run",
                ),
            ),
        ),
        ("slug: /knowledge-base/using-streamlit/how-upgrade-latest-version-streamlit",),
    ),
    "a removed page": Play(
        (
            (search("color component"), read("components/color.mdx", 1, 12)),
            (delete("components/color.mdx"), BROKEN),
            (read("docs.json", 84, 90), read("components/index.mdx", 118, 132), read("changelog.mdx", 772, 776)),
            (
                replace("docs.json", '                      "components/color",\n', ""),
                replace("components/index.mdx", COLOR_CARD, ""),
                replace("changelog.mdx", "Update [color](/components/color) swatches", "Update color swatches"),
            ),
            (BROKEN,),
        )
    ),
    "a moved page in words": Play(
        (
            (search("keyboard shortcuts editor"), read("editor/keyboard-shortcuts.mdx", 1, 12)),
            (move("editor/keyboard-shortcuts.mdx", "help-center/keyboard-shortcuts.mdx"), BROKEN),
            (
                replace("docs.json", '"editor/keyboard-shortcuts"', '"help-center/keyboard-shortcuts"'),
                replace("editor/index.mdx", "/editor/keyboard-shortcuts", "/help-center/keyboard-shortcuts"),
                read("redirects.json", 1, 6),
            ),
            (redirect("/editor/keyboard-shortcuts", "/help-center/keyboard-shortcuts"),),
            (BROKEN,),
        )
    ),
    "a new page in words": Play(
        (
            (search("deploy/monorepo navigation"), read("deploy/monorepo.mdx", 1, 20)),
            (read("docs.json", 155, 168),),
            (
                write(
                    "deploy/zeppelin.mdx",
                    '---\ntitle: "Zeppelin"\ndescription: "Deploy your site to Zeppelin."\n---\n\n'
                    "Deploy your site to Zeppelin with one command:\n\n```bash\nzep push\n```\n",
                ),
                replace(
                    "docs.json",
                    '"deploy/monorepo",\n',
                    '"deploy/monorepo",\n                      "deploy/zeppelin",\n',
                ),
            ),
        ),
        ("description:", "zep push"),
    ),
    "a component": Play(
        (
            (exactly("<Tip>"), read("components/badge.mdx", 1, 24)),
            (
                replace(
                    "components/badge.mdx",
                    "Place badges inline within text or as standalone elements.\n",
                    "Place badges inline within text or as standalone elements.\n\n"
                    "<Tip>\n  Use at most three badges in a row.\n</Tip>\n",
                ),
            ),
        ),
        ("<Tip>",),
    ),
    "a changelog entry": simple(
        "fail_calc config",
        "website/docs/reference/resource-configs/fail_calc.md",
        "* `v0.20.0`: Introduced `fail_calc` config\n",
        "* `v0.20.0`: Introduced `fail_calc` config\n"
        "* `v0.21.0`: Renamed `fail_calc` to `failure_calc` for tests of sources\n",
        "<Changelog>",
    ),
    "an admonition": simple("alias config models and seeds", ALIAS, CAUTION, "", "resource_types: [models, seeds]"),
    "a table": simple(
        "support tiers dedicated CSM",
        "advanced-support.mdx",
        "| **Feature request tracking** | No | No | Yes |\n",
        "| **Feature request tracking** | No | No | Yes |\n| **Quarterly reviews** | No | No | Yes |\n",
        "| | Standard | Advanced Slack |",
    ),
    "nothing to do": nothing("camera access Chrome", CAMERA),
    "outside the documentation": nothing(
        "publish the site GitHub workflow", question="I can write documentation only. Who adds the workflow?"
    ),
    "a secret": nothing("contact support key", "contact-support.mdx"),
    # Over more_cases.py
    "a renamed command": Play(
        (
            (search("lantern runner"),),
            (read("guides/deploy.md", 20, 34), read("troubleshooting.md", 1, 40)),
            (
                replace("guides/deploy.md", "lantern runner start", "lantern worker start"),
                replace(
                    "troubleshooting.md", "`lantern runner start --queue NAME", "`lantern worker start --queue NAME"
                ),
            ),
        ),
        ("The command `lantern runner` is now `lantern worker`",),
    ),
    "broken links": Play(
        (
            (read("guides/deploy.md"), ("check_links", {"folder": "guides/deploy.md"})),
            (
                replace("guides/deploy.md", "../reference/configration.md", "../reference/configuration.md"),
                replace("guides/deploy.md", "/concepts/idempotency", "/guides/idempotency"),
            ),
            (("check_links", {"folder": "guides/deploy.md"}),),
        ),
        ("/guides/idempotency", "/reference/configuration"),
    ),
    "a new page beside others": Play(
        (
            (search("priority of a job"), read("concepts/queues.md", 1, 20), read("docs.json", 14, 26)),
            (
                write(
                    "concepts/priorities.md",
                    '---\ntitle: "Priorities"\ndescription: "Which job comes first."\n---\n\n'
                    "A job has a priority from 0 to 9. Jobs of priority 9 come first; the default is 5.\n",
                ),
                replace("docs.json", '"concepts/queues", ', '"concepts/queues", "concepts/priorities", '),
            ),
        ),
        ("title:", "description:"),
    ),
    "a page that goes": Play(
        (
            (search("monitoring"), read("guides/monitoring.md")),
            (delete("guides/monitoring.md"), BROKEN),
            (read("guides/deploy.md", 66, 76), read("guides/schedule-jobs.md", 50, 57), read("docs.json", 20, 30)),
            (
                replace(
                    "guides/deploy.md",
                    "- [ ] Somebody is told when jobs die: [Monitoring](/guides/monitoring#alerts).\n",
                    "- [ ] Somebody is told when jobs die.\n",
                ),
                replace(
                    "guides/schedule-jobs.md",
                    "`lantern_schedule_skipped_total`, see\n[Monitoring](/guides/monitoring).",
                    "`lantern_schedule_skipped_total`.",
                ),
                replace("docs.json", '"guides/deploy",\n          "guides/monitoring"\n', '"guides/deploy"\n'),
            ),
            (BROKEN,),
        )
    ),
    "a heading in other words": Play(
        (
            (search("dead-letter queue"), read("concepts/queues.md")),
            (replace("concepts/queues.md", "## The dead-letter queue", "## Dead jobs"), BROKEN),
            (
                replace("concepts/retries.md", "/concepts/queues#the-dead-letter-queue", "/concepts/queues#dead-jobs"),
                BROKEN,
            ),
        )
    ),
    "a row of options": simple(
        "lantern enqueue options",
        "reference/cli.md",
        "| `--wait` | wait until it is done or dead, and exit accordingly |\n",
        "| `--wait` | wait until it is done or dead, and exit accordingly |\n"
        "| `--dry-run` | check the payload and add nothing |\n",
        "## lantern enqueue",
    ),
    "a page that moves": Play(
        (
            (search("troubleshooting"), read("troubleshooting.md", 1, 12), read("docs.json", 20, 40)),
            (move("troubleshooting.md", "guides/troubleshooting.md"), BROKEN),
            (
                replace("installation.md", "(/troubleshooting)", "(/guides/troubleshooting)"),
                replace("docs.json", '"pages": ["troubleshooting", "changelog"]', '"pages": ["changelog"]'),
                replace(
                    "docs.json", '"guides/monitoring"\n', '"guides/monitoring",\n          "guides/troubleshooting"\n'
                ),
            ),
            (BROKEN,),
        )
    ),
    "a question": nothing(
        "price licence cost", question="The pages and the instruction give no price. What does Lantern cost?"
    ),
    "a new page in a toctree": Play(
        (
            (search("how to guides toctree"), read("docs/index.md", 60, 120), search("ctx.exit")),
            (read("docs/index.md", 60, 120),),
            (
                write(
                    "docs/exit-codes.md", "# Exit codes\n\nA command ends with the code that is given to `ctx.exit`.\n"
                ),
                replace("docs/index.md", "support-multiple-versions\n", "support-multiple-versions\nexit-codes\n"),
            ),
        ),
        ("ctx.exit", "How to Guides"),
    ),
    "a directive": Play(
        (
            (search("flask shell"), read("docs/shell.rst")),
            (
                replace(
                    "docs/shell.rst",
                    "    $ flask shell\n",
                    "    $ flask shell\n\n.. note::\n\n    The environment variable ``FLASK_APP`` has to be set.\n",
                ),
            ),
        )
    ),
    "a link between pages": Play(
        (
            (
                search("larger real Redux projects"),
                read("docs/faq/Miscellaneous.md", 7, 30),
                ("list", {"name": "Ecosystem"}),
            ),
            (
                replace(
                    "docs/faq/Miscellaneous.md",
                    "- [Introduction: Examples](../introduction/Examples.md)\n",
                    "- [Introduction: Examples](../introduction/Examples.md)\n"
                    "- [Introduction: Ecosystem](../introduction/Ecosystem.md)\n",
                ),
            ),
        ),
        ("docs/introduction/Ecosystem.md",),
    ),
    "a step of a page": simple(
        "path to project folder may include ampersand Windows",
        "docs/guide/troubleshooting.md",
        "- Remove `&` from the path to your project\n",
        "- Remove `&` from the path to your project\n- Quote the path to your project\n",
    ),
}
