"""``docsmith completion``: what has shells ask this program for the commands, options and values that may follow."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class, shell_complete

from service.cli.main import COMPLETE_VARIABLE, ROOT
from service.cli.output import DONE, Output
from service.cli.parsing import Choice, Options, command


class Bash(BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        """``--option=value`` comes as three words from bash."""
        words, unfinished = super().get_completion_args()
        return [word for word in words if word != "="], unfinished


SHELLS = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}


@command(
    "completion",
    examples=['completion bash   # eval "$(docsmith completion bash)"', "completion fish | source"],
    works_alone=True,
)
@click.argument("shell", type=Choice(SHELLS), help="for which shell")
async def completion(options: Options, output: Output) -> int:
    text = SHELLS[options.shell](ROOT, {}, "docsmith", COMPLETE_VARIABLE).source()
    output.result({"text": text}, text.rstrip("\n"))
    return DONE


def offer(asked: str) -> int:
    """Answer a shell."""
    add_completion_class(Bash)
    return shell_complete(ROOT, {}, "docsmith", COMPLETE_VARIABLE, asked)
