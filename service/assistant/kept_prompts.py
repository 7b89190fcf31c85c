"""The assistant's prompts, as the log keeps them."""

from service.assistant.finding.model_tools import tools
from service.assistant.finding.planning import form
from service.assistant.prompts import PROMPTS
from service.domain.prompts import PromptSet


def prompts() -> PromptSet:
    """Return the prompts, the tools, and the form of a plan."""
    return PROMPTS.kept("assistant", *tools(), form())
