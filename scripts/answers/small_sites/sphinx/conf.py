"""Configure the documentation of ebbtide."""

project = "ebbtide"
author = "The ebbtide authors"
release = "3.4.0"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.napoleon"]
intersphinx_mapping = {"python": ("https://docs.python.org/3", None)}
html_theme = "furo"
exclude_patterns = ["_out"]
