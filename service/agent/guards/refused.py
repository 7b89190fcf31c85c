"""The refusal of a tool."""


class Refused(Exception):
    """A tool refuses the call; the message says to the model why, and then what would be accepted.

    ``docs_folder``: where a path outside of the documentation would have to be.
    """

    def __init__(self, reason: str, advice: str = "", *, docs_folder: str = "") -> None:
        super().__init__(f"{reason} {advice}" if advice else reason)
        self.reason, self.advice, self.docs_folder = reason, advice, docs_folder
