"""What `graphwarden list` and `graphwarden schema` print."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticUndefined

from sim.kernel.component import FAMILIES, Component, Family, Section, _nested, allowed, dump, nearest, summary_line
from sim.kernel.errors import InputError

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def load_families() -> dict[str, Family]:
    """Every family of the scenario, loaded."""
    import sim.scenario  # noqa: F401 (importing it registers all families)

    for family in FAMILIES.values():
        family.load()
    return dict(sorted(FAMILIES.items()))


def show(name: str | None) -> None:
    """Print one family, all of them, the columns, or the graphs. Raises InputError for an unknown name."""
    if name == "columns":
        _show_columns()
        return
    families = load_families()
    if name == "graphs":
        _show_graphs()
        return
    chosen = families if name is None else {k: f for k, f in families.items() if k == name or k.endswith(f".{name}")}
    if not chosen:
        known = [*families, "columns", "graphs"]
        raise InputError(f"list: found {name!r}; allowed: {', '.join(known)}{nearest(name or '', known)}")
    for family in chosen.values():
        print(f"\n{family.name}: {summary_line(family.base)}")
        for cls in family.classes():
            print(f"  {cls.kind:<22} {summary_line(cls)}{f' [{cls.source}]' if cls.source else ''}")
            for field in parameters(cls):
                print(f"      {field}")


def parameters(cls: type[Component]) -> list[str]:
    """`name = default: what is allowed` for every field of a component."""
    lines = []
    for name, info in cls.model_fields.items():
        default = "" if info.default is PydanticUndefined else f" = {_short(dump(info.default))}"
        lines.append(f"{name}{default}: {allowed(info.annotation, info.metadata)}")
    return lines


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_short(v)}" for k, v in value.items()) + "}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _show_columns() -> None:
    from sim.columns import AGENT, GROUP, ROUND

    for title, columns in (("rounds.csv", ROUND), ("groups.csv", GROUP), ("agents.parquet", AGENT)):
        print(f"\n{title}")
        for column in columns:
            print(f"  {column.name:<26} [{column.unit}] {column.meaning}")


def _show_graphs() -> None:
    from sim.kernel.graphs import describe

    print(f"{'source':<17} {'nodes':>7} {'ties':>8} {'degree':>7} {'features':>8} {'classes':>7} {'homophily':>9}")
    for row in describe():
        if row["nodes"] is None:
            print(f"{row['source']:<17} {'as you choose':>15}")
            continue
        line = "{source:<17} {nodes:>7} {edges:>8} {mean_degree:>7.2f} {dimensions:>8} {classes:>7} {homophily:>9.3f}"
        print(f"{line.format(**row)}  {row['note']}".rstrip())


def places() -> dict[str, type[Section]]:
    """{dotted path: section or family base} for every section of a scenario, in the order of the file."""
    from sim.scenario import Scenario

    found: dict[str, type[Section]] = {}

    def walk(cls: type[Section], path: str) -> None:
        found[path] = cls
        if issubclass(cls, Component):
            kinds = cls._family.classes() if cls.is_family() else iter([cls])
            fields = {name: info for kind in kinds for name, info in kind.model_fields.items()}
        else:
            fields = dict(cls.model_fields)
        for name, info in fields.items():
            inner, many = _nested(info.annotation)
            if inner is not None:
                walk(inner, f"{path}.{name}".lstrip(".") + (".0" if many else ""))

    load_families()
    walk(Scenario, "")
    return found


def scenario_schema() -> dict[str, Any]:
    """The JSON schema of a scenario file, every kind of every family included, with what each key means."""
    from sim.scenario import Scenario

    sections = {cls.__name__: cls for cls in places().values()}
    schema = Scenario.model_json_schema()
    _explain(schema, Scenario)
    for name, part in schema["$defs"].items():
        cls = sections[name]
        if issubclass(cls, Component) and cls.is_family():
            for option, kind in zip(part["anyOf"], cls._family.classes()):
                _explain(option, kind)
        else:
            _explain(part, cls)
    return {**schema, "$schema": DIALECT, "title": "Graphwarden scenario"}


def sweep_schema() -> dict[str, Any]:
    """The JSON schema of a sweep file."""
    from sim.sweep.schema import SweepFile

    schema = SweepFile.model_json_schema()
    _explain(schema, SweepFile)
    return {**schema, "$schema": DIALECT, "title": "Graphwarden sweep"}


def _explain(part: dict[str, Any], cls: type[Section]) -> None:
    """Give a schema's properties their descriptions and, with the kinds of components named, their defaults."""
    from sim.notes import field_notes

    notes = field_notes(cls)
    for name, info in cls.model_fields.items():
        place = part["properties"][name]
        if name in notes:
            place["description"] = notes[name]
        if info.default is not PydanticUndefined:
            place["default"] = dump(info.default)
