"""What `graphwarden list` and `graphwarden schema` print."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticUndefined

from sim.kernel.component import FAMILIES, Component, Family, allowed, dump, nearest, summary_line
from sim.kernel.errors import InputError


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
    from sim.columns import GROUP, ROUND

    for title, columns in (("rounds.csv", ROUND), ("groups.csv", GROUP)):
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


def scenario_schema() -> dict[str, Any]:
    """The JSON schema of a scenario file, every kind of every family included."""
    from sim.scenario import Scenario

    load_families()
    schema = Scenario.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Graphwarden scenario", **schema}
