"""`graphwarden report DIR`: figures and one self-contained HTML page of a run or a sweep (extra `[report]`)."""

from __future__ import annotations

from pathlib import Path

from sim.compare import kind_of
from sim.kernel.errors import InputError

__all__ = ["write_report"]


def write_report(folder: str | Path) -> Path:
    """Write `figures/*.png` and `report.html` into a run's or sweep's folder and return the page's path.

    Raises InputError when the folder holds neither, nothing is finished in it, or the extra is not installed.
    """
    folder = Path(folder)
    kind = kind_of(folder)
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f"report: {error.name} is not installed; pip install 'graphwarden[report]'") from None
    if kind == "sweep":
        from sim.report.of_sweep import page
    else:
        from sim.report.of_run import page
    return page(folder)
