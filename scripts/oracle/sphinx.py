"""Samples built by Sphinx: it is asked for the source, address, title and anchors of each page, and the order."""

import json
import shutil
from pathlib import Path

from scripts.oracle.build import python_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = ("sphinx==8.1.3", "myst-parser==4.0.0", "sphinx-design==0.6.1")
BUILDERS = {"html": "html", "myst": "dirhtml"}
"""Builders of the samples, as their own files say for those who read them."""
_BUILD = """
import json, sys
from pathlib import Path
from sphinx.application import Sphinx

docs, builder, target = sys.argv[1:]
app = Sphinx(docs, docs, "out", "trees", builder)
app.build(True)
env, root = app.env, app.config.root_doc
order, stack = [], [root]
while stack:
    name = stack.pop()
    if name not in order:
        order.append(name)
        stack.extend(reversed(env.toctree_includes.get(name, [])))
objects = [(each[3], each[4]) for name, domain in env.domains.items() if name != "std" for each in domain.get_objects()]
objects += [(each[3], each[4]) for each in env.domains["std"].get_objects() if each[2] not in ("doc", "label")]
json.dump({
    "pages": [(str(env.doc2path(name)), app.builder.get_target_uri(name), env.titles[name].astext(),
               str(app.builder.get_outfilename(name) if builder == "dirhtml" else f"out/{name}.html"),
               [anchor for page, anchor in objects if page == name]) for name in env.found_docs],
    "order": [str(env.doc2path(name)) for name in order],
}, open(target, "w"))
"""
_PAGE = "//div[@class='body']"


def build(sample: Path, work: Path) -> BuiltSite:
    python = python_packages(work, PACKAGES)
    copy = (work / "sites" / sample.name).resolve()
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    run([python, "-c", _BUILD, "docs", BUILDERS[sample.name], "facts.json"], copy)
    facts = json.loads((copy / "facts.json").read_text())
    found = BuiltSite({})
    for source, url, title, built, anchors in facts["pages"]:
        path = str(Path(source).resolve().relative_to(copy))
        text = visible_text(copy / built, _PAGE)
        found.pages[path] = BuiltPage("/" if url == "index.html" else f"/{url}", title, text, sorted(set(anchors)))
    found.navigation.append([str(Path(source).resolve().relative_to(copy)) for source in facts["order"]])
    return found
