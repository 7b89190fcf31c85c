"""The forms of instructions that the builtin editor understands; help, replies and the manual show these."""

FORMS = (
    'replace "A" with "B" [in PATH, or in every page]',
    'add "TEXT" to PATH [under "HEADING", before "HEADING", or at the top], or to every page',
    'create page PATH with title "T" [and text "TEXT"]',
    "rename page PATH to PATH",
    "remove page PATH",
    'set title of PATH to "T"',
    "fix broken links [in PATH]",
)
