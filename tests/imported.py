"""Imports all of the service, for tests/forked.py. What it imports late (litellm) is imported late there, too."""

import importlib
import pkgutil

import service

for module in pkgutil.walk_packages(service.__path__, "service."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
