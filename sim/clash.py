"""`agents` is also the import name of an unrelated package: say so in one line instead of failing somewhere inside."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sim.kernel.errors import InputError


def complain_about_clash() -> None:
    """Raise InputError when `agents` or `server` would be imported from somewhere else than this project."""
    home = Path(__file__).resolve().parent.parent
    for name in ("agents", "server"):
        spec = importlib.util.find_spec(name)
        place = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if place is None:
            folders = list(spec.submodule_search_locations or []) if spec is not None else []
            place = Path(folders[0]).resolve() / "__init__.py" if folders else None
        if place is None or place.parent.parent != home:
            raise InputError(
                f"the package {name!r} was found at {place.parent if place else 'no place'}, not beside Graphwarden "
                f"({home}): "
                "another installed package has the same name; use a virtual environment of its own"
            )
