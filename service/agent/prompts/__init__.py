"""The prompts of the agent's model, as text files in this folder."""

from importlib import resources


def prompt(name: str, **values: str) -> str:
    """Return the prompt with ``{name}`` filled in, in one pass: braces in a value stay what they are."""
    text = resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    for key in values:
        if f"{{{key}}}" not in text:
            raise KeyError(key)
    parts = text.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        key, closed, rest = part.partition("}")
        filled.append(values[key] + rest if closed and key in values else "{" + part)
    return "".join(filled).strip()
