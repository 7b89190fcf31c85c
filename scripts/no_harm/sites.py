"""Random sites: pages with odd names, drafts, versions, translations, parts, redirects, and links in all forms."""

import json
import posixpath
from random import Random
from urllib.parse import quote

from msgspec import Struct

from scripts.no_harm import kinds
from scripts.no_harm.kinds import FIRST, KINDS, ODD_NAMES, SUFFIXES, Sample
from scripts.no_harm.reader import Reading, read

NAMES = ("setup", "usage", "options", "limits", "notes", "colours", "strings", "winds")
FOLDERS = ("", "", "", "guides/", "guides/", "reference/", "my tools/", "deep/er/")
HEADINGS = ("Part one", "Part two", "Long tail", "Own part")
BROKEN, WITH_ANCHOR = 0.08, 0.35
"""How often a link is broken from the start, and how often it names a heading."""


class Made(Struct):
    kind: str
    sample: Sample
    files: dict[str, str]
    pages: list[str]
    """Paths of the pages, copies included."""
    copies: dict[str, list[str]]
    """Translations of a page, by its path."""


class _Maker:
    def __init__(self, kind: str, random: Random) -> None:
        self.random, self.kind = random, kind
        self.links = self.words = 0

    def make(self) -> Made:
        insides = self._insides()
        sample = KINDS[self.kind](self.random, insides)
        front = self.random.choice(sample.front)
        ends = "\r\n" if self.random.random() < 0.2 else "\n"
        mark = "\ufeff" if self.random.random() < 0.12 else ""
        files: dict[str, str] = {}
        pages = [_join(sample.folder, inside) for inside in insides]
        copies: dict[str, list[str]] = {}
        for folder, what in sample.copies:
            for inside, page in zip(list(insides), list(pages[: len(insides)]), strict=True):
                if self.random.random() < 0.7:
                    stem, _, suffix = inside.rpartition(".")
                    copy = f"{folder}/{inside}" if folder else _join(sample.folder, f"{stem}.fr.{suffix}")
                    pages.append(copy)
                    if what == "language":
                        copies.setdefault(page, []).append(copy)
        for page in pages:
            files[page] = self._head(sample, front, page)
        part = self._part(sample, files)
        leaves = [page for page in pages if "index" not in page]  # of a folder's page its generator may hide the folder
        for page in [page for page in leaves if sample.draft and self.random.random() < 0.1]:
            files[page] = files[page].replace("---\n", f"---\n{sample.draft}: true\n", 1)
        site = read({**sample.files, **files}, sample.rules)
        bodies = {page: self._body(sample, page, pages, site, part) for page in pages}
        for page, body in bodies.items():
            files[page] += body
        if self.kind == "sphinx":
            files[pages[0]] += _toctree(insides)
        for page in pages:
            files[page] = mark * (self.random.random() < 0.7) + files[page].replace("\n", ends)
        config = {path: text.replace("\n", ends) if ends != "\n" and self.random.random() < 0.5 else text
                  for path, text in sample.files.items()}  # fmt: skip
        return Made(self.kind, sample, {**config, **files}, pages, copies)

    def _insides(self) -> list[str]:
        """Return the paths of pages below their folder, the first page of the site first."""
        first = FIRST.get(self.kind, "index")
        suffix = self.random.choice(SUFFIXES.get(self.kind, (".md",)))
        found = [f"{first}{suffix}"]
        odd = [*kinds.NAMES, *ODD_NAMES.get(self.kind, ())]
        names = self.random.sample([*NAMES, *self.random.sample(odd, 3)], self.random.randint(4, 8))
        found += [f"{self.random.choice(FOLDERS)}{name}{suffix}" for name in names]
        if self.random.random() < 0.4:
            found.append(f"{self.random.choice(FOLDERS[3:])}{first}{suffix}")
        return list(dict.fromkeys(found))

    def _head(self, sample: Sample, front: str, page: str) -> str:
        self.words += 1
        title = f"Kites {self.words}"
        own = f"The word kite{self.words} is here. A cat sat; concatenate all.\n"
        if page.endswith(".rst"):
            return f"{title}\n{'=' * len(title)}\n\n{own}"
        extra = {}
        if self.kind == "docusaurus" and self.random.random() < 0.15:
            extra["slug"] = f"/own-{self.words}"
        elif self.kind == "starlight" and self.random.random() < 0.1:
            extra["slug"] = f"own-{self.words}"
        fields = "".join(f"{key}: {value}\n" for key, value in {"title": title, **extra}.items())
        head = {
            "yaml": f"---\n{fields}---\n\n",
            "toml": f'+++\ntitle = "{title}"\n+++\n\n',
            "json": json.dumps({"title": title}, indent=2) + "\n\n",
        }.get(front if not extra else "yaml", "")
        return head + ("" if sample.title_field else f"# {title}\n\n") + own

    def _part(self, sample: Sample, files: dict[str, str]) -> str:
        """Add a part that pages show, and return its path; empty for none."""
        if not sample.include or self.random.random() < 0.4:
            return ""
        self.words += 1
        folder = {"jekyll": "_includes", "mintlify": "snippets"}.get(self.kind, sample.folder)
        suffix = {"sphinx": ".txt", "docusaurus": ".mdx", "mintlify": ".mdx"}.get(self.kind, ".md")
        path = _join(folder, f"_part{suffix}")
        files[path] = f"Shown: kite{self.words}.\n"
        return path

    # Texts

    def _body(self, sample: Sample, page: str, pages: list[str], site: Reading, part: str) -> str:
        lines = []
        for at, heading in enumerate(HEADINGS):
            own = " {#own-id}" if at == 3 and sample.own_ids and not page.endswith(".rst") else ""
            lines += ["", _heading(heading + own, page), ""]
            count = self.random.randint(0, 2)
            links = [self._link(sample, page, self.random.choice(pages), site) for _ in range(count)]
            kept = [each for each in links if each]
            style = self.random.choice(("list", "see", "prose"))
            for text, definition in kept:
                lines += {
                    "list": [f"- {text}"],
                    "see": [f"See {text}.", ""],
                    "prose": [f"Read {text}, or a book.", ""],
                }[style]
                if definition:
                    lines += ["", definition, ""]
            if not kept:
                lines.append("Nothing but wind.")
        if part and self.random.random() < 0.5:
            lines += ["", *self._shown(sample, page, part)]
        return "\n".join(lines) + "\n"

    def _shown(self, sample: Sample, page: str, part: str) -> list[str]:
        self.links += 1
        near = posixpath.relpath(part, posixpath.dirname(page) or ".")
        name = {"jekyll": posixpath.basename(part), "mintlify": posixpath.basename(part), "mkdocs": part}.get(
            self.kind, near
        )
        if self.kind == "docusaurus" and near.startswith(".."):
            shown = sample.include.replace("./%s", f"@site/{part}")
        else:
            shown = sample.include % name
        mark = {"rst": f".. L{self.links}: shown", "mdx": f"{{/* L{self.links}: shown */}}"}
        return [mark.get(page.rpartition(".")[2], f"<!-- L{self.links}: shown -->"), "", shown, ""]

    def _link(self, sample: Sample, page: str, to: str, site: Reading) -> tuple[str, str] | None:
        """Return a link to a page, and its definition below; None where that form cannot lead there."""
        form = self.random.choice(sample.forms)
        name = f"L{self.links + 1}"
        anchor = ""
        if self.random.random() < WITH_ANCHOR and not page.endswith(".rst"):
            anchor = "#" + self.random.choice(sorted(site.anchors(to) | {"part-one", "part-two", "long-tail"}))
        if self.random.random() < BROKEN:
            anchor = "#part-onee" if anchor else ""
            to = to if anchor else to.replace(posixpath.basename(to), f"nowhere-{posixpath.basename(to)}")
            if to not in site.address_of and form not in FILE_LIKE:
                form = next((each for each in sample.forms if each in FILE_LIKE), "")
        target = _target(form, page, to, site)
        if target is None:
            return None
        self.links += 1
        return _written(form, name, target, anchor)


FILE_LIKE = ("file", "angle", "reference", "document", "root file", "liquid")


def _target(form: str, page: str, to: str, site: Reading) -> str | None:
    """Return how a page names another one in a form; None where it cannot."""
    folder = posixpath.dirname(page)
    near = posixpath.relpath(to, folder or ".")
    address = site.address_of.get(to, "")
    mount = next((each for each, _ in site.rules.mounts if not each or to.startswith(f"{each}/")), "")
    same = mount == next((each for each, _ in site.rules.mounts if not each or page.startswith(f"{each}/")), "")
    inside = to[len(mount) :].lstrip("/")
    stem = near.rpartition(".")[0]
    match form:
        case "file" | "reference":
            return quote(near) if same else None
        case "angle":
            return near if same and "%" not in near and "#" not in near and "?" not in near else None
        case "root file":
            return quote(f"/{inside}") if same and mount == site.rules.mounts[0][0] else None
        case "address" | "address tag" | "reference address" | "card":
            return address or None
        case "near" | "near tag":
            own = site.address_of.get(page, "")
            if not address or not own:
                return None
            base = own if own.endswith("/") else posixpath.dirname(own)
            return posixpath.relpath(address, base) + ("/" if address.endswith("/") else "")
        case "bare":
            bare = posixpath.basename(stem) in ("index", "README")
            return quote(stem if stem.startswith(".") else f"./{stem}") if address and same and not bare else None
        case "document":
            return stem
        case "document root":
            return "/" + inside.rpartition(".")[0]
        case "rest":
            return quote(f"{stem}.html")
        case "hugo name" | "hugo path" | "hugo near":
            return _hugo_target(form, page, to, site)
        case "liquid":
            return to if not to.startswith("_") else None
        case "based":
            return address.removeprefix(site.rules.base) or None
        case "post":
            return "2024-02-03-news"
    return None


def _hugo_target(form: str, page: str, to: str, site: Reading) -> str | None:
    is_home = to.startswith("content/_index.") or to.endswith("/_index.fr.md")  # not found by older versions
    if page.endswith(".fr.md") != to.endswith(".fr.md") or to not in site.address_of or is_home:
        return None
    inside = to[len("content/") :].replace(".fr.md", ".md")
    if form == "hugo path":
        return f"/{inside}"
    if form == "hugo near":
        return posixpath.relpath(f"content/{inside}", posixpath.dirname(page))
    name = posixpath.basename(inside)
    alike = [each for each in site.address_of if posixpath.basename(each) == posixpath.basename(to)]
    return name.removesuffix(".md") if len(alike) == 1 and "index" not in name else None


def _written(form: str, name: str, target: str, anchor: str) -> tuple[str, str]:
    whole = target + anchor
    match form:
        case "angle":
            return f"[{name}](<{whole}>)", ""
        case "reference" | "reference address":
            return f"[{name}][of-{name}]", f"[of-{name}]: {whole}"
        case "near tag" | "address tag":
            return f'<a href="{whole}">{name}</a>', ""
        case "card":
            return f'<Card title="{name}" href="{whole}" />', ""
        case "document" | "document root":
            return f":doc:`{name} <{target}>`", ""
        case "rest":
            return f"`{name} <{target}>`_", ""
        case "hugo name" | "hugo path" | "hugo near":
            return f'[{name}]({{{{< relref "{whole}" >}}}})', ""
        case "liquid":
            return f"[{name}]({{% link {target} %}}{anchor})", ""
        case "based":
            return f"[{name}]({{{{ '{whole}' | relative_url }}}})", ""
        case "post":
            return f"[{name}]({{% post_url {target} %}})", ""
    return f"[{name}]({whole})", ""


def _heading(text: str, page: str) -> str:
    return f"{text}\n{'-' * len(text)}" if page.endswith(".rst") else f"## {text}"


def _toctree(insides: list[str]) -> str:
    suffix = posixpath.splitext(insides[0])[1]
    names = [each.removesuffix(suffix) for each in insides[1:]]
    if suffix == ".md":
        return "\n```{toctree}\n" + "".join(f"{name}\n" for name in names) + "```\n"
    return "\n.. toctree::\n\n" + "".join(f"   {name}\n" for name in names)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def make_site(kind: str, random: Random) -> Made:
    return _Maker(kind, random).make()
