"""Where data sets are looked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "GRAPHWARDEN_DATA"


def cache_folder() -> Path:
    """The user's cache of data sets."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "graphwarden"


def roots(root: str | None) -> list[tuple[Path, str]]:
    """Folders to look in, with the name a user knows them by: `graph.root` alone if given, else the usual two."""
    if root is not None:
        return [(Path(root).expanduser(), "graph.root")]
    named = os.environ.get(VARIABLE)
    found = [(Path(named).expanduser(), VARIABLE)] if named else []
    return [*found, (cache_folder(), "your cache")]


def looked_in(root: str | None) -> str:
    """The folders as a phrase for a message."""
    phrase = ", ".join(f"{folder} ({name})" for folder, name in roots(root))
    return phrase if root is not None or os.environ.get(VARIABLE) else f"{phrase}; {VARIABLE} is not set"
