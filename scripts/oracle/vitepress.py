"""Samples built by VitePress: its configuration as it resolves it, and the pages that it makes."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from lxml import html

from scripts.oracle.build import npm_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = ("vitepress@1.6.4", "vue@3.5.22")
_RESOLVE = """
import { resolveConfig } from 'vitepress'
const { srcDir, outDir, pages, dynamicRoutes, rewrites, site, cleanUrls } = await resolveConfig('.', 'build')
const made = dynamicRoutes.routes.map((route) => route.path)
process.stdout.write(JSON.stringify({
  srcDir, outDir, pages: pages.filter((page) => !made.includes(page)), moved: rewrites.map, base: site.base, cleanUrls,
}))
"""
_NOT_TEXT = re.compile(rb'<span class="lang">[^<]*</span>|<div class="line-numbers-wrapper".*?</div>', re.DOTALL)
_APART = re.compile(rb'(?=</label>|</span><span class="text")')
"""Places that the style sheet sets apart."""


def build(sample: Path, work: Path) -> BuiltSite:
    packages = npm_packages(work, PACKAGES)
    copy = work / "sites" / sample.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    link = copy.parent / "node_modules"
    if not link.exists():
        link.symlink_to(packages)
    site = next(copy.rglob(".vitepress")).parent
    (site / "package.json").write_text('{"name": "sample", "private": true, "type": "module"}')
    run([packages / ".bin" / "vitepress", "build"], site)
    (site / "resolve.mjs").write_text(_RESOLVE)
    resolved = subprocess.run(["node", "resolve.mjs"], cwd=site, capture_output=True, text=True, check=True)
    return _site(json.loads(resolved.stdout), copy.resolve())


def _site(config: dict[str, Any], root: Path) -> BuiltSite:
    found = BuiltSite({})
    paths: dict[str, str] = {}
    built: dict[str, Path] = {}
    source = Path(config["srcDir"]).resolve().relative_to(root)
    for page in config["pages"]:
        name = config["moved"].get(page, page).removesuffix(".md")
        is_index = name == "index" or name.endswith("/index")
        shown = name.removesuffix("index") if is_index else name if config["cleanUrls"] else f"{name}.html"
        file = Path(config["outDir"]) / f"{name}.html"
        file.write_bytes(_APART.sub(b" ", _NOT_TEXT.sub(b"", file.read_bytes())))
        path, url = str(source / page), f"{config['base']}{shown}"
        is_home = bool(html.fromstring(file.read_bytes()).xpath("//*[contains(@class, 'VPHome')]"))
        part = "//*[contains(@class, 'VPHome')]" if is_home else "//*[contains(@class, 'vp-doc')]"
        title = html.fromstring(file.read_bytes()).findtext(".//title") or ""
        found.pages[path] = BuiltPage(url, "" if is_home or title == "VitePress" else title, visible_text(file, part))
        paths[url.rstrip("/")], built[path] = path, file
    sidebars = [_links(file, "VPSidebar", paths) for file in built.values()]
    menus = [_links(file, "VPNavBarMenu", paths) for file in built.values()]
    named = {path for listed in sidebars for path in listed}
    rest = [[path for path in listed if path not in named] for listed in menus]
    home = paths.get(config["base"].rstrip("/"))
    for listed in [[home] if home else [], *sidebars, *rest]:
        if listed and listed not in found.navigation:
            found.navigation.append(listed)
    return found


def _links(file: Path, part: str, paths: dict[str, str]) -> list[str]:
    page = html.fromstring(file.read_bytes())
    hrefs = [str(href) for href in page.xpath(f"//*[contains(@class, '{part}')]//a/@href")]
    wanted = (href.partition("#")[0].rstrip("/") for href in hrefs)
    return list(dict.fromkeys(paths[href] for href in wanted if href in paths))
