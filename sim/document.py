"""YAML with a memory for lines: what a scenario file says, and on which line each key stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path as FilePath
from typing import Any, Literal

import yaml

from sim.kernel.component import Path, show
from sim.kernel.errors import InputError


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of scalars: `1e-3` is a number, and only true/false are booleans (`no` and `on` are text)."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":float", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)


@dataclass
class Document:
    """A file's plain data, and the line (from 1) of every key and list item, by path."""

    name: str
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of a path, or of the nearest enclosing key; None for what came from the command line."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def locate(path: str | FilePath) -> FilePath:
    """The file itself, or the scenario of that name that ships with the package: `quickstart`, `sweeps/ablation.yaml`,
    `scenarios/quickstart.yaml`. A file of the user's own always comes first."""
    path = FilePath(path)
    if path.exists() or path.is_absolute():
        return path
    shipped = FilePath(str(resources.files("scenarios")))
    inside = FilePath(*path.parts[1:]) if path.parts[:1] == ("scenarios",) else path
    for name in (inside, inside.with_name(f"{inside.name}.yaml")):
        if name.suffix == ".yaml" and ".." not in name.parts and (shipped / name).is_file():
            return shipped / name
    return path


def read(path: str | FilePath) -> Document:
    """Read a YAML file. Raises InputError with one message when it is missing, unreadable, empty or not a mapping."""
    path = FilePath(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: found a folder; expected a YAML file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start} cannot be read); save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Document:
    """Parse YAML text; `name` is what error messages call it."""
    lines: dict[Path, int] = {}
    try:
        node = yaml.compose(text, Loader=_Loader)
        repeated = _note_lines(node, (), lines) if node is not None else []
        data = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark else ""
        raise InputError(f"{name}{where}: not valid YAML: {_cause(error)}") from None
    except RecursionError:
        raise InputError(f"{name}: not valid YAML: a value contains itself, or is nested too deeply") from None
    if data is None:
        raise InputError(f"{name}: the file is empty; expected a scenario (see `graphwarden list` and the README)")
    if not isinstance(data, dict):
        raise InputError(f"{name}: found {show(data)} at the top; expected a mapping of sections")
    if repeated:
        raise InputError(
            "\n".join(f"{name}:{line}: key {key!r} appears twice in one mapping" for key, line in repeated)
        )
    return Document(name, data, lines)


def expect(paper: Document, kind: Literal["scenario", "sweep", "tune"]) -> None:
    """Raise InputError when a file is plainly of another kind than the command it was given to."""
    found = kind
    if "scenario" in paper.data and "graph" not in paper.data:
        found = "tune" if "search" in paper.data else "sweep"
    elif "graph" in paper.data and "scenario" not in paper.data:
        found = "scenario"
    if found != kind:
        command = "run" if found == "scenario" else found
        raise InputError(f"{paper.name}: found a {found} file, expected a {kind} file; use `graphwarden {command}`")


def _cause(error: yaml.YAMLError) -> str:
    """What is wrong, on one line; what the parser says in its own terms about a user's likely mistakes, in theirs."""
    problem = str(getattr(error, "problem", None) or error)
    if "'\\t'" in problem:
        return "found a tab where only spaces may indent; replace tabs by spaces"
    if problem == "but found another document":
        return "found a second document after '---'; expected one a file"
    return " ".join(problem.split())


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int]) -> list[tuple[str, int]]:
    repeated: list[tuple[str, int]] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                repeated.append((name, key.start_mark.line + 1))
            seen.add(name)
            here = (*path, name)
            lines[here] = key.start_mark.line + 1
            repeated += _note_lines(value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            here = (*path, index)
            lines[here] = value.start_mark.line + 1
            repeated += _note_lines(value, here, lines)
    return repeated


def scalar(text: str) -> Any:
    """A command-line value read as YAML: `0.04`, `true`, `[1, 2]`, `mean-gap`."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(f"--set: cannot read the value {text!r} as YAML: {_cause(error)}") from None


def write(data: Any) -> str:
    """Plain data as YAML text, keys in the order given."""
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
