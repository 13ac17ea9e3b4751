"""Errors that are the user's to mend. They carry one message, rebuild from `args`, and never show a traceback."""


class InputError(Exception):
    """The input is wrong (exit code 2): a scenario, an option, a data set or an output folder."""


class SettingError(InputError, ValueError):
    """A component cannot do what its settings ask on this graph or with these reports; found out during a run."""


class RunError(Exception):
    """The run itself failed (exit code 1)."""


class Interrupted(Exception):
    """The user stopped it (exit code 130); the message says what is left and how to go on."""
