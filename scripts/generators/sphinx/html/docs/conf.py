import os

project = "Lighthouse"
version = "4.2"
release = "4.2.1"
root_doc = "index"
extensions = ["sphinx.ext.extlinks", "sphinx_design", "sphinx.ext.ifconfig"]
extlinks = {"issue": ("https://bugs.example/%s", "bug #%s")}
exclude_patterns = ["drafts", "parts/*", "README.rst"]
default_role = "code"
rst_epilog = """
.. |keeper| replace:: head keeper
"""
html_theme = "basic"
html_permalinks = False
author = os.environ.get("AUTHOR", "")


def setup(app: object) -> None:
    app.add_object_type("confval", "confval", objname="setting")
