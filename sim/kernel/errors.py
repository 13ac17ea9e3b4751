"""Errors that are the user's to mend. They carry one message, rebuild from `args`, and never show a traceback."""


class InputError(Exception):
    """The input is wrong (exit code 2): a scenario, an option, a data set or an output folder."""


class RunError(Exception):
    """The run itself failed (exit code 1)."""
