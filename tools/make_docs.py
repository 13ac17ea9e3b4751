"""Write what is generated from the code: docs/columns.md, docs/scenario.md, the two JSON schemas that editors check
scenario and sweep files against, and the line in each shipped file that names its schema.

Run from the repository: `python tools/make_docs.py`. A test runs it with `--check`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sim import document  # noqa: E402
from sim.columns import AGENT, GROUP, ROUND, Column  # noqa: E402
from sim.kernel.component import Component, Section, _nested, allowed, dump, summary_line  # noqa: E402
from sim.listing import _short, places, scenario_schema, sweep_schema  # noqa: E402
from sim.notes import field_notes  # noqa: E402

SCHEMAS = {"scenario": Path("scenarios/scenario.schema.json"), "sweep": Path("scenarios/sweep.schema.json")}
MARK = "# yaml-language-server: $schema="

# Columns ------------------------------------------------------------------------------------------------------------

PARTS = {
    "round": "The round",
    "sent": "Reports",
    "epsilon_mean": "Privacy",
    "detection_precision": "Detection",
    "edges": "The published graph",
    "feature_error_raw": "Features",
    "train_accuracy": "Learning",
    "accuracy_no_edges": "Anchors",
    "estimate_auc": "Tie probabilities",
    "degree_distance": "Shape of the graph",
    "seconds_report": "Cost",
}
"""Headings of the `rounds.csv` tables, by the first column of each."""

COLUMNS_INTRO = """\
# How to read the columns

Every round of a run is a row of `rounds.csv`, every attacker group of every round a row of `groups.csv`, and every
agent a row of `agents.parquet`. `graphwarden list columns` prints the definitions below; `Result.rounds`,
`Result.groups` and `Result.agents` are the same tables in Python.

Five habits make the numbers hard to misread:

- **Empty is not zero.** A quantity that does not exist in a run is empty: a score without attackers has no AUC, a run
  without training no accuracy. Nothing is filled in.
- **Denominators are honest users.** `test_accuracy` is over all honest users of the test split, pruned and offline ones
  included. A defence cannot look better by throwing away the users it would get wrong.
- **Read accuracy between its anchors.** `accuracy_no_edges` is what the features give without any graph and
  `accuracy_true_graph` what the true graph gives with the same private features. `gain_retained` is the place of the
  run between the two. They are trained on the round's own reports and split, in the last round by default
  (`anchors: each` for all).
- **The three kinds of ties are disjoint.** `edges = edges_true + edges_false + edges_attack`. A tie of an attacker is
  wrong even if the honest end accepted it.
- **Detection is about ranking and about the decision.** `detection_auc` and `detection_ap` judge the score;
  `detection_precision`, `detection_recall` and `detection_fpr` judge who was flagged. An AUC under 0.5 means that the
  score ranks attackers below honest users, and pruning by it removes the wrong people first.

The `seconds_*` columns and `peak_memory_mb` differ from run to run. All others are a function of scenario and seed.
"""


def columns_page() -> str:
    """docs/columns.md."""
    lines = [COLUMNS_INTRO, "## `rounds.csv`: a row a round", ""]
    part: list[Column] = []
    for column in ROUND:
        if column.name in PARTS:
            lines += _column_table(part)
            part = []
            lines += [f"### {PARTS[column.name]}", ""]
        part.append(column)
    lines += _column_table(part)
    lines += ["## `groups.csv`: a row a round and attacker group", "", *_column_table(GROUP)]
    lines += ["## `agents.parquet`: a row an agent", "", *_column_table(AGENT)]
    return "\n".join(lines).rstrip() + "\n"


def _column_table(columns: list[Column]) -> list[str]:
    if not columns:
        return []
    rows = [f"| `{c.name}` | {c.unit} | {_cell(c.meaning)} |" for c in columns]
    return ["| column | unit | meaning |", "|---|---|---|", *rows, ""]


# Scenario -----------------------------------------------------------------------------------------------------------

SCENARIO_INTRO = """\
# Scenario reference

A scenario is one YAML file; this page lists every key. Every key but `graph` has a default, so a short file is a whole
experiment. `graphwarden validate FILE` checks a file, `graphwarden list FAMILY` prints a family of components in the
terminal, and `graphwarden schema` prints the JSON schema.

- **Values are strict.** A number is not text and `true` is not a number; there is no NaN and no infinity. Unknown keys,
  wrong types and impossible values are reported together, each with its line, what is allowed, and the nearest valid
  name.
- **A component is named by its `kind`** (a graph by its `source`), and its other keys are its parameters. Where a key
  has a default kind, `kind` may be left out.
- **A class of your own** is a kind too: `kind: module:Class`, looked for beside the scenario and on the Python path.
  See [adding a component](add-a-component.md).
- **Any key can be overridden** with `--set a.b.c=value`, list items by their number. If the override changes a `kind`,
  keys that the new kind does not know are dropped with a note.
- **Relative paths** start from the scenario's folder, or else from the working folder.

Editors that speak the YAML language server complete and check keys when the file's first line names the schema, as it
does in the shipped scenarios: `# yaml-language-server: $schema=scenario.schema.json`. `graphwarden schema` prints the
file to put there.
"""


def scenario_page() -> str:
    """docs/scenario.md."""
    lines = [SCENARIO_INTRO]
    for path, cls in places().items():
        if issubclass(cls, Component) and cls.is_family():
            lines += _family(path, cls)
        else:
            lines += [f"## {_title(path)}" if path else "## The whole file", "", *_prose(cls), ""]
            lines += _field_table(cls, list(cls.model_fields), path)
    return "\n".join(lines).rstrip() + "\n"


def _family(path: str, base: type[Component]) -> list[str]:
    family = base._family
    lines = [f"## {_title(path)}", "", *_prose(base), ""]
    usual = base.default_kind or getattr(_default_of(path), "kind", "")
    left_out = f" Default: `{usual}`." if usual else ""
    kinds = list(family.classes())
    lines += [f"Family `{family.name}`; named by `{family.tag}`.{left_out}", ""]
    shared = [name for name in base.model_fields if all(name in kind.model_fields for kind in kinds)]
    shared = [name for name in shared if len({repr(kind.model_fields[name]) for kind in kinds}) == 1]
    if shared:
        lines += ["Every kind takes", "", *_field_table(base, shared, path)]
    for kind in kinds:
        lines += [f"### {_title(path)}: `{kind.kind}`", "", *_prose(kind), ""]
        if kind.source:
            lines += [f"Source: {kind.source}.", ""]
        lines += _field_table(kind, [name for name in kind.model_fields if name not in shared], path)
    return lines


def _default_of(path: str) -> Any:
    """The default component at a path of the scenario, if the enclosing section has one."""
    parent, _, name = path.rpartition(".")
    section = places()[parent]
    info = section.model_fields.get(name)
    return None if info is None or info.default is PydanticUndefined else info.default


def _field_table(cls: type[Section], names: list[str], path: str) -> list[str]:
    if not names:
        return []
    notes = field_notes(cls)
    lines = ["| key | allowed | default | |", "|---|---|---|---|"]
    for name in names:
        info = cls.model_fields[name]
        inner, many = _nested(info.annotation)
        wanted = _cell(allowed(info.annotation, info.metadata))
        if inner is not None:
            place = f"{path}.{name}".lstrip(".") + (".0" if many else "")
            wanted = f"{'a list of ' if many else ''}[{_title(place)}](#{anchor(_title(place))})"
        lines.append(f"| `{name}` | {wanted} | {_default(info)} | {_cell(_sentence(notes.get(name, '')))} |")
    return [*lines, ""]


def _default(info: Any) -> str:
    """A field's default as one would write it, sections by their kind alone."""
    value = info.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, Component):
        return f"`{value.kind}`"
    if isinstance(value, Section):
        return "its defaults"
    return f"`{_cell(_short(dump(value)))}`"


def _title(path: str) -> str:
    """`population.attackers.0.claims` as a reader says it: `population.attackers[].claims`."""
    return f"`{path.replace('.0', '[]')}`"


def anchor(title: str) -> str:
    """The anchor that Python-Markdown and GitHub give to a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def _prose(cls: type) -> list[str]:
    """A docstring as paragraphs."""
    paragraphs = (cls.__doc__ or summary_line(cls)).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).split("\n")


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if not note or note[-1] in ".?!" else ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# Schemas ------------------------------------------------------------------------------------------------------------


def schemas() -> dict[Path, str]:
    """{path: JSON text} of both schemas."""
    made = {"scenario": scenario_schema(), "sweep": sweep_schema()}
    return {SCHEMAS[name]: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in made.items()}


def with_header(file: Path) -> str:
    """A shipped YAML file with its first line naming the schema, relative to the file."""
    text = file.read_text(encoding="utf-8")
    kind = "sweep" if "scenario" in document.parse(text, str(file)).data else "scenario"
    relative = os.path.relpath(ROOT / SCHEMAS[kind], file.parent).replace(os.sep, "/")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(MARK)]
    return f"{MARK}{relative}\n" + "".join(lines)


def pages() -> dict[Path, str]:
    """{path below the repository: text} of everything that is generated."""
    made = {Path("docs/columns.md"): columns_page(), Path("docs/scenario.md"): scenario_page(), **schemas()}
    for file in sorted((ROOT / "scenarios").rglob("*.yaml")):
        made[file.relative_to(ROOT)] = with_header(file)
    return made


def main() -> int:
    """Write what differs, and say what that was; with `--check` write nothing and leave with 1 if anything does."""
    stale = [(path, text) for path, text in pages().items() if _held(ROOT / path) != text]
    for path, text in stale:
        if "--check" not in sys.argv[1:]:
            (ROOT / path).write_text(text, encoding="utf-8")
        print(f"{'stale' if '--check' in sys.argv[1:] else 'wrote'}: {path}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


def _held(place: Path) -> str | None:
    return place.read_text(encoding="utf-8") if place.exists() else None


if __name__ == "__main__":
    sys.exit(main())
