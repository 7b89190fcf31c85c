"""The prompts of the agent's model; ``service/ports/prompts.py`` says how they are written."""

from service.ports.prompts import Prompts

PROMPTS = Prompts(__name__)
prompt = PROMPTS.text
