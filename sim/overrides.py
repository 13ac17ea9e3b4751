"""Overrides by dotted path: `population.attackers.0.share=0.04`, `server.suspicion.kind=combined`."""

from __future__ import annotations

from typing import Any

from sim.kernel.component import Component, Path, Section, _nested, nearest
from sim.kernel.errors import InputError


def split(key: str) -> Path:
    """`population.attackers.0.share` -> ("population", "attackers", 0, "share")."""
    return tuple(int(part) if part.isdigit() else part for part in key.split("."))


def apply(data: dict[str, Any], settings: dict[str, Any], schema: type[Section]) -> list[str]:
    """Write every setting into `data` in place; returns notes for the user.

    Overrides of a `kind` come first: keys that the new kind knows keep their values, the others are dropped with a
    note. A key set in the same command that the new kind lacks stays, and is then an error like any unknown key.
    """
    notes: list[str] = []
    tags = ("kind", "source")
    ordered = sorted(settings.items(), key=lambda item: split(item[0])[-1] not in tags)
    for key, value in ordered:
        path = split(key)
        parent = _walk(data, path, key)
        last = path[-1]
        if isinstance(parent, list):
            if not isinstance(last, int) or last >= len(parent):
                raise InputError(f"--set {key}: found index {last}; allowed: 0..{len(parent) - 1}")
            parent[last] = value
            continue
        if last in tags and isinstance(value, str):
            base = _schema_at(schema, path[:-1], data)
            if (
                base is not None
                and issubclass(base, Component)
                and last == base._family.tag
                and parent.get(last) != value
            ):
                notes += _drop_foreign(base, value, parent, key)
        parent[last] = value
    return notes


def _walk(data: Any, path: Path, key: str) -> Any:
    here = data
    for depth, part in enumerate(path[:-1]):
        if isinstance(here, list):
            if not isinstance(part, int) or part >= len(here):
                where = ".".join(map(str, path[:depth]))
                raise InputError(f"--set {key}: {where} has {len(here)} items; found index {part}")
            here = here[part]
        elif isinstance(here, dict):
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
        else:
            where = ".".join(map(str, path[:depth]))
            raise InputError(f"--set {key}: {where} holds a single value ({here!r}), so it has no key {part!r}")
    if not isinstance(here, (dict, list)):
        raise InputError(f"--set {key}: {'.'.join(map(str, path[:-1]))} holds a single value ({here!r})")
    return here


def _schema_at(schema: type[Section], path: Path, data: Any) -> type[Section] | None:
    here: type[Section] | None = schema
    for part in path:
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
            continue
        if here is None:
            return None
        if issubclass(here, Component) and here.is_family():
            kind = data.get(here._family.tag) if isinstance(data, dict) else None
            try:
                here = here._family.resolve(kind) if isinstance(kind, str) else here
            except LookupError:
                return None
        info = here.model_fields.get(part)
        here = _nested(info.annotation)[0] if info is not None else None
        data = data.get(part) if isinstance(data, dict) else None
    return here


def _drop_foreign(base: type[Component], kind: str, values: dict[str, Any], key: str) -> list[str]:
    try:
        known = base._family.resolve(kind).model_fields
    except LookupError:
        return []
    foreign = [name for name in values if name not in known and name != base._family.tag]
    for name in foreign:
        del values[name]
    where = key.rpartition(".")[0]
    return [
        f"{where}: {kind!r} has no {name!r}; the value in the file is dropped{nearest(name, known)}" for name in foreign
    ]
