"""Where a sweep's runs live: a folder a run, named by everything that its rows depend on."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("agents", "server", "sim")
_NO_ROW_DEPENDS_ON = (
    "sim/sweep/",
    "sim/cli.py",
    "sim/progress.py",
    "sim/closing.py",
    "sim/report",
    "sim/compare",
    "sim/tune",
)
_LIBRARIES = ("numpy", "scipy", "torch", "torch_geometric", "scikit-learn", "numba", "mesa", "simpy", "networkx")
FINISHED, FAILURE, CHECKPOINT = "summary.json", "failure.json", "checkpoint.pickle"


class Store:
    """The folder of a sweep. `runs/KEY` is a run directory like any other (`graphwarden report` reads it); a run is
    finished when its `summary.json` is there, and failed when `failure.json` is. Locks stand beside the runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def run(self, key: str) -> Path:
        """The run directory of a key."""
        return self.folder / "runs" / key

    def finished(self, key: str) -> bool:
        """Whether the run is done and needs nothing more."""
        return (self.run(key) / FINISHED).exists()

    def failure(self, key: str) -> dict[str, Any] | None:
        """The record of a failed run: its stage, cause and traceback."""
        file = self.run(key) / FAILURE
        if self.finished(key) or not file.exists():
            return None
        return dict(json.loads(file.read_text(encoding="utf-8")))

    def interrupted(self, key: str) -> bool:
        """Whether the run was stopped between two rounds, so that it can go on from there."""
        folder = self.run(key)
        return (folder / CHECKPOINT).exists() and not (folder / FAILURE).exists() and not self.finished(key)

    def clear(self, key: str) -> None:
        """Remove what is left of an unfinished run."""
        shutil.rmtree(self.run(key), ignore_errors=True)

    def record_failure(self, key: str, stage: str, cause: str, traceback: str = "") -> None:
        """Leave a record that the run failed."""
        self.run(key).mkdir(parents=True, exist_ok=True)
        text = json.dumps({"stage": stage, "cause": cause, "traceback": traceback}, indent=2) + "\n"
        write_whole(self.run(key) / FAILURE, text.encode("utf-8"))

    @contextlib.contextmanager
    def claim(self, key: str, wait: bool = False) -> Iterator[bool]:
        """Hold a run's lock: True when it is ours. The system drops the lock of a process however it dies."""
        locks = self.folder / "runs" / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / key, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it there: readers see the old one or the new one, never half of one."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def run_key(scenario: dict[str, Any], code: str) -> str:
    """The name of a run's folder: a digest of the resolved scenario (its seed included), the code version, and the
    content of files and of the user's own classes that the scenario names."""
    outside = {text: digest for text in _texts(scenario) if (digest := _outside(text))}
    content = json.dumps([scenario, code, outside], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(content.encode("utf-8"), digest_size=8).hexdigest()


@functools.cache
def code_version() -> str:
    """A digest of this package's source and data files and of the versions of the libraries that compute its rows."""
    digest = hashlib.blake2b(digest_size=16)
    for package in _PACKAGES:
        home = _ROOT / package
        for file in sorted(f for f in home.rglob("*") if f.suffix in (".py", ".npz")):
            name = f"{package}/{file.relative_to(home).as_posix()}"
            if not name.startswith(_NO_ROW_DEPENDS_ON):
                digest.update(f"{name}\x00".encode() + hashlib.blake2b(file.read_bytes()).digest())
    for library in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            digest.update(f"{library} {metadata.version(library)}\x00".encode())
    digest.update(f"python {sys.version_info.major}.{sys.version_info.minor}".encode())
    return digest.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _outside(text: str) -> str | None:
    """A digest of the file that a setting names: a data file, or the module of `kind: module:Class`."""
    if not set(text) & set("./:"):
        return None
    module = sys.modules.get(text.partition(":")[0]) if ":" in text else None
    place = Path(str(getattr(module, "__file__", None) or text))
    with contextlib.suppress(OSError, ValueError):
        if place.is_file():
            return hashlib.blake2b(place.read_bytes(), digest_size=16).hexdigest()
    return None
