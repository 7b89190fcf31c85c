"""The prompts for trying a model; ``service/ports/prompts.py`` says how they are written."""

from service.ports.prompts import Prompts

PROMPTS = Prompts(__name__)
