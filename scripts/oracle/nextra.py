"""Samples built by Next.js with Nextra: pages by their addresses, which show the word of their source."""

import shutil
from pathlib import Path

from scripts.oracle.build import npm_packages, run
from scripts.oracle.compare import BuiltSite
from scripts.oracle.starlight import built_site

PACKAGES = (
    "next@15.5.6", "react@19.2.0", "react-dom@19.2.0", "nextra@4.6.1", "nextra-theme-docs@4.6.1", "zod@4.1.12",
)  # fmt: skip
"""With later ones of zod the theme refuses its own options."""


def build(sample: Path, work: Path) -> BuiltSite:
    packages = npm_packages(work, PACKAGES)
    copy = work / "sites" / sample.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    (copy / "package.json").write_text('{"name": "sample", "private": true}')
    (copy / "node_modules").symlink_to(packages)
    run([packages / ".bin" / "next", "build"], copy)
    return built_site(sample, copy / "out", "//main", "//aside//ul//a/@href", "//title")
