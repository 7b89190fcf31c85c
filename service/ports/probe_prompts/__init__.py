"""What a model is asked when it is tried; ``service/ports/prompts.py`` says how prompts are written."""

from service.ports.prompts import Prompts

PROMPTS = Prompts(__name__)
