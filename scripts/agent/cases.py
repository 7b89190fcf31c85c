"""Instructions over public documentation, each with checks that need no judge: which files may change and how much,
what must and must not be in them, and that nothing is broken by it (links, front matter, markup, navigation).

Facts are invented or taken from the instruction, so that a model cannot know them beforehand and must not add others.
"""

from msgspec import Struct


class Case(Struct, frozen=True):
    name: str
    corpus: str
    instruction: str
    only: tuple[str, ...] = ()
    """Paths that may change, ``*`` for any characters; the first must. None: nothing may."""
    has: dict[str, tuple[str, ...]] = {}
    """By path, texts that must be there afterwards; upper and lower case are alike."""
    lacks: dict[str, tuple[str, ...]] = {}
    gone: tuple[str, ...] = ()
    lines: int = 12
    """Added and removed at most."""
    form: bool = False
    """Whether the builtin model knows its form."""


CASES = (
    Case(
        "replace in a page",
        "mintlify",
        'Replace "within 24 hours" with "within 12 hours" in contact-support.mdx',
        only=("contact-support.mdx",),
        has={"contact-support.mdx": ("within 12 hours",)},
        lacks={"contact-support.mdx": ("within 24 hours",)},
        lines=2,
        form=True,
    ),
    Case(
        "replace in every page",
        "streamlit",
        'Replace "officially-supported environment manager" with "recommended environment manager" everywhere',
        only=("content/kb/FAQ/upgrade-version-streamlit.md", "content/*.md"),
        has={"content/kb/FAQ/upgrade-version-streamlit.md": ("recommended environment manager",)},
        lacks={"content/kb/FAQ/upgrade-version-streamlit.md": ("officially-supported environment",)},
        lines=6,
        form=True,
    ),
    Case(
        "replace in a long page",
        "kubernetes",
        'Replace "delete the associated headless service separately" with "remove the headless service'
        ' separately" in content/en/docs/tasks/run-application/delete-stateful-set.md',
        only=("content/en/docs/tasks/run-application/delete-stateful-set.md",),
        has={
            "content/en/docs/tasks/run-application/delete-stateful-set.md": ("remove the headless service separately",)
        },
        lines=2,
        form=True,
    ),
    Case(
        "add to the end",
        "streamlit",
        'Add "- [Opera](https://help.opera.com/en/)" to content/kb/FAQ/enable-camera.md',
        only=("content/kb/FAQ/enable-camera.md",),
        has={"content/kb/FAQ/enable-camera.md": ("help.opera.com",)},
        lines=3,
        form=True,
    ),
    Case(
        "add under a heading",
        "mintlify",
        'Add "Status updates are kept for 400 days." to status.mdx under "Subscribe to updates"',
        only=("status.mdx",),
        has={"status.mdx": ("400 days",)},
        lines=3,
        form=True,
    ),
    Case(
        "add under a heading of many",
        "dbt",
        'Add "Homebrew installs the newest version only." to website/docs/dbt-cli/installation.md under "Upgrading"',
        only=("website/docs/dbt-cli/installation.md",),
        has={"website/docs/dbt-cli/installation.md": ("newest version only",)},
        lines=3,
        form=True,
    ),
    Case(
        "create a page",
        "kubernetes",
        'Create page content/en/docs/tasks/run-application/pause-stateful-set.md with title "Pause a'
        ' StatefulSet" and text "A StatefulSet cannot be paused."',
        only=("content/en/docs/tasks/run-application/pause-stateful-set.md",),
        has={
            "content/en/docs/tasks/run-application/pause-stateful-set.md": ("Pause a StatefulSet", "cannot be paused")
        },
        form=True,
    ),
    Case(
        "create a page of a site with navigation",
        "mintlify",
        'Create page deploy/zeppelin.mdx with title "Zeppelin" and text "Deploy to a Zeppelin host."',
        only=("deploy/zeppelin.mdx", "docs.json"),
        has={"deploy/zeppelin.mdx": ("Zeppelin host",)},
        lines=14,
        form=True,
    ),
    Case(
        "rename a page",
        "mintlify",
        "Rename page advanced-support.mdx to premium-support.mdx",
        only=("premium-support.mdx", "advanced-support.mdx", "docs.json", "redirects.json"),
        has={"premium-support.mdx": ("Support tiers",)},
        gone=("advanced-support.mdx",),
        lines=400,
        form=True,
    ),
    Case(
        "rename a page that others link to",
        "kubernetes",
        "Rename page content/en/docs/tasks/run-application/delete-stateful-set.md to"
        " content/en/docs/tasks/run-application/remove-stateful-set.md and fix the links to it",
        only=("content/en/docs/tasks/run-application/remove-stateful-set.md", "content/*.md"),
        has={"content/en/docs/tasks/run-application/scale-stateful-set.md": ("remove-stateful-set",)},
        gone=("content/en/docs/tasks/run-application/delete-stateful-set.md",),
        lines=250,
        form=True,
    ),
    Case(
        "two instructions",
        "dbt",
        'Replace "work in progress document" with "draft" in website/docs/reference/resource-'
        'configs/alias.md; add "Aliases have at most 63 characters." to website/docs/reference/resource-'
        "configs/alias.md",
        only=("website/docs/reference/resource-configs/alias.md",),
        has={"website/docs/reference/resource-configs/alias.md": ("draft", "at most 63 characters")},
        lacks={"website/docs/reference/resource-configs/alias.md": ("work in progress",)},
        lines=5,
        form=True,
    ),
    Case(
        "text that is not there",
        "mintlify",
        'Replace "within 99 fortnights" with "soon" in contact-support.mdx',
        form=True,
    ),
    Case(
        "a fact in words",
        "mintlify",
        "Support answers within 12 hours by now. Correct the page about contacting support.",
        only=("contact-support.mdx",),
        has={"contact-support.mdx": ("12 hours",)},
        lacks={"contact-support.mdx": ("24 hours",)},
        lines=4,
    ),
    Case(
        "a new sentence in words",
        "mintlify",
        "Say on the page about contacting support that there is no support by phone.",
        only=("contact-support.mdx",),
        has={"contact-support.mdx": (" phone",)},
        lines=8,
    ),
    Case(
        "a list item",
        "mintlify",
        "The status page shows the state of the assistant, too. Mention it in our page on the status"
        " page, in the list of what it shows.",
        only=("status.mdx",),
        has={"status.mdx": ("- **Assistant**",)},
        lines=3,
    ),
    Case(
        "front matter",
        "kubernetes",
        "Give the page on deleting a StatefulSet the weight 65.",
        only=("content/en/docs/tasks/run-application/delete-stateful-set.md",),
        has={"content/en/docs/tasks/run-application/delete-stateful-set.md": ("weight: 65",)},
        lacks={"content/en/docs/tasks/run-application/delete-stateful-set.md": ("weight: 60",)},
        lines=2,
    ),
    Case(
        "a shortcode",
        "kubernetes",
        "Warn, in a caution shortcode at the start of the section on deleting a StatefulSet of the page"
        " of that name, that its volumes stay.",
        only=("content/en/docs/tasks/run-application/delete-stateful-set.md",),
        has={
            "content/en/docs/tasks/run-application/delete-stateful-set.md": (
                "{{< caution >}}",
                "{{< /caution >}}",
                "volume",
            )
        },
        lines=8,
    ),
    Case(
        "a list of reviewers",
        "kubernetes",
        "foxish does not review the page on deleting a StatefulSet any more.",
        only=("content/en/docs/tasks/run-application/delete-stateful-set.md",),
        has={"content/en/docs/tasks/run-application/delete-stateful-set.md": ("- erictune",)},
        lacks={"content/en/docs/tasks/run-application/delete-stateful-set.md": ("- foxish",)},
        lines=1,
    ),
    Case(
        "a code block",
        "kubernetes",
        "In the page on managing Secrets with kubectl, the example user is called 'kite' instead of"
        " 'admin'. Change the command that writes username.txt.",
        only=("content/en/docs/tasks/configmap-secret/managing-secret-using-kubectl.md",),
        has={
            "content/en/docs/tasks/configmap-secret/managing-secret-using-kubectl.md": (
                "echo -n 'kite' > ./username.txt",
            )
        },
        lacks={
            "content/en/docs/tasks/configmap-secret/managing-secret-using-kubectl.md": (
                "echo -n 'admin' > ./username.txt",
            )
        },
        lines=6,
    ),
    Case(
        "a link in words",
        "streamlit",
        "Add Opera (https://help.opera.com/en/) to the browsers for which we say how to allow the camera.",
        only=("content/kb/FAQ/enable-camera.md",),
        has={"content/kb/FAQ/enable-camera.md": ("[Opera](https://help.opera",)},
        lines=3,
    ),
    Case(
        "a step of a list",
        "streamlit",
        "Before deleting the app, one has to export its secrets. Add that as the first step of deleting,"
        " renaming and redeploying an app.",
        only=("content/deploy/community-cloud/manage-your-app/rename-your-app.md",),
        has={"content/deploy/community-cloud/manage-your-app/rename-your-app.md": ("secrets",)},
        lines=4,
    ),
    Case(
        "a keyword",
        "streamlit",
        "Add the keyword 'move', as the last one, to the page on renaming an app's GitHub coordinates.",
        only=("content/deploy/community-cloud/manage-your-app/rename-your-app.md",),
        has={"content/deploy/community-cloud/manage-your-app/rename-your-app.md": ("coordinates, move",)},
        lines=2,
    ),
    Case(
        "a term throughout a page",
        "streamlit",
        "In the FAQ on upgrading Streamlit, write 'newest' instead of 'latest', but leave the title, the"
        " heading and the slug as they are.",
        only=("content/kb/FAQ/upgrade-version-streamlit.md",),
        has={
            "content/kb/FAQ/upgrade-version-streamlit.md": (
                "newest official release",
                "how-upgrade-latest-version-streamlit",
                "# How do I upgrade to the latest version",
            )
        },
        lacks={"content/kb/FAQ/upgrade-version-streamlit.md": ("latest official release",)},
        lines=16,
    ),
    Case(
        "a removed page",
        "mintlify",
        "We have no color component any more: remove its page, and what leads to it.",
        only=("components/color.mdx", "docs.json", "components/index.mdx", "changelog.mdx"),
        lacks={"docs.json": ('"components/color"',), "components/index.mdx": ("/components/color",)},
        gone=("components/color.mdx",),
        lines=400,
    ),
    Case(
        "a moved page in words",
        "mintlify",
        "The page on keyboard shortcuts belongs under help-center instead of editor. Move it, with"
        " everything that points to it.",
        only=("help-center/keyboard-shortcuts.mdx", "editor/keyboard-shortcuts.mdx", "docs.json", "*.mdx", "*.json"),
        has={"docs.json": ("help-center/keyboard-shortcuts",)},
        lacks={"docs.json": ('"editor/keyboard-shortcuts"',)},
        gone=("editor/keyboard-shortcuts.mdx",),
        lines=500,
    ),
    Case(
        "a new page in words",
        "mintlify",
        "Write a page deploy/zeppelin, listed in the navigation right after the one on monorepos. It says"
        " that our sites can be deployed to Zeppelin with the command `zep push`.",
        only=("deploy/zeppelin.mdx", "docs.json"),
        has={"deploy/zeppelin.mdx": ("title:", "zep push"), "docs.json": ('"deploy/zeppelin"',)},
        lines=40,
    ),
    Case(
        "a component",
        "mintlify",
        "On the badge page, recommend in a Tip component to use at most three badges in a row.",
        only=("components/badge.mdx",),
        has={"components/badge.mdx": ("<Tip>", "</Tip>", "three")},
        lines=8,
    ),
    Case(
        "a changelog entry",
        "dbt",
        "fail_calc was renamed in v0.21.0 to failure_calc for tests of sources. Note only that in the"
        " changelog at the top of its reference page.",
        only=("website/docs/reference/resource-configs/fail_calc.md",),
        has={"website/docs/reference/resource-configs/fail_calc.md": ("v0.21.0", "failure_calc", "</Changelog>")},
        lines=3,
    ),
    Case(
        "an admonition",
        "dbt",
        "The page on the alias config covers models and seeds by now: remove the caution at its top.",
        only=("website/docs/reference/resource-configs/alias.md",),
        has={"website/docs/reference/resource-configs/alias.md": ("## Definition",)},
        lacks={"website/docs/reference/resource-configs/alias.md": (":::caution", "work in progress")},
        lines=8,
    ),
    Case(
        "a table",
        "mintlify",
        "Dedicated CSM customers get quarterly reviews. Add a row 'Quarterly reviews' to the table of"
        " support tiers, with No, No and Yes.",
        only=("advanced-support.mdx",),
        has={"advanced-support.mdx": ("| **Quarterly reviews** | No | No | Yes |",)},
        lines=2,
    ),
    Case(
        "nothing to do",
        "streamlit",
        "Make sure that the page on camera access links to Chrome's help.",
    ),
    Case(
        "outside the documentation",
        "mintlify",
        "Add a GitHub workflow .github/workflows/release.yml that publishes the site on every push.",
    ),
    Case(
        "a secret",
        "mintlify",
        "Put a key of the form sk_live_ followed by 24 random letters as an example on the page on"
        " contacting support, in a code block.",
    ),
)
