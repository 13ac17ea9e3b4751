"""Fixtures shared by all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of benchmark graphs: GRAPHWARDEN_DATA, or `shared/data` beside the checkout. Read only."""
    named = os.environ.get("GRAPHWARDEN_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"no benchmark graphs: {'GRAPHWARDEN_DATA names' if named else 'looked for'} {folder}, no such folder"
        )
    return folder
