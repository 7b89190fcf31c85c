"""Samples built by Debian's Hugo: layouts of our own write down the source, title, place and anchors of each page."""

import os
import shutil
from pathlib import Path

from lxml import html

from scripts.oracle.build import run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = ("hugo", "libsass1")
PAGE = """<html><head><meta name="source" content="{{ with .File }}{{ .Filename }}{{ end }}">
<meta name="url" content="{{ .RelPermalink }}"><title>{{ .Title }}</title></head>
<body><nav>{{ if .IsHome }}{{ partial "walk" . }}{{ end }}</nav><main>{{ .Content }}</main></body></html>"""
WALK = """{{ with .File }}<a>{{ .Filename }}</a>{{ end }}
{{ if .IsNode }}{{ range .Pages }}{{ partial "walk" . }}{{ end }}{{ end }}"""


def build(sample: Path, work: Path) -> BuiltSite:
    command = program(work)
    site = (work / "sites" / sample.name).resolve()
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(sample, site)
    for name, text in (("single", PAGE), ("list", PAGE)):
        (site / "layouts" / "_default").mkdir(parents=True, exist_ok=True)
        (site / "layouts" / "_default" / f"{name}.html").write_text(text)
    (site / "layouts" / "partials").mkdir(exist_ok=True)
    (site / "layouts" / "partials" / "walk.html").write_text(WALK)
    run([*command, "--source", site], work)
    return _gathered(site)


def program(work: Path) -> list[str | Path]:
    """Return the command that starts Hugo from where its packages are unpacked; nothing is installed."""
    folder = (work / "packages").resolve()
    if not (folder / "usr/bin/hugo").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "download", *PACKAGES], folder)
        for package in sorted(folder.glob("*.deb")):
            run(["dpkg", "-x", package, folder], folder)
    libraries = next(folder.glob("usr/lib/*/libsass.so*")).parent
    return ["env", f"LD_LIBRARY_PATH={libraries}", folder / "usr/bin/hugo"]


def _gathered(site: Path) -> BuiltSite:
    found = BuiltSite({})
    for file in sorted((site / "public").rglob("*.html")):
        page = html.fromstring(file.read_bytes())
        source, url = (str(page.xpath(f"string(//meta[@name='{name}']/@content)")) for name in ("source", "url"))
        if source:
            path = os.path.relpath(source, site)
            title, anchors = str(page.findtext(".//title")), [str(one) for one in page.xpath("//main//@id")]
            found.pages[path] = BuiltPage(url, title, visible_text(file, "//main"), anchors)
        listed = [os.path.relpath(one.text, site) for one in page.xpath("//nav/a")]
        if listed:
            found.navigation.append(listed)
    for number, listed in enumerate(found.navigation):
        found.navigation[number] = [path for path in listed if path in found.pages]
    return found
