"""The prompts for trying a model; ``service/ports/prompts.py`` says how they are written."""
