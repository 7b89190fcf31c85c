"""Imports all of the service, for tests/forked.py, and what it imports late itself because that takes seconds."""

import importlib
import os
import pkgutil

import service

for module in pkgutil.walk_packages(service.__path__, "service."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}  # as the service does
importlib.import_module("litellm")
