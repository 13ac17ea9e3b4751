"""What the source says about a section's keys: the string or the comment that stands with each field.

Read from the source only when a page or the schema is written, so that it costs an ordinary start nothing.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from functools import cache

from sim.kernel.component import Section


@cache
def field_notes(cls: type[Section]) -> dict[str, str]:
    """{field: what is said about it} for the fields of a section, inherited ones included; unexplained ones are left
    out. A string on the lines after a field comes before a comment on the field's own line."""
    notes: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if isinstance(owner, type) and issubclass(owner, Section) and "__module__" in owner.__dict__:
            notes.update(_own_notes(owner))
    return {name: note for name, note in notes.items() if name in cls.model_fields}


def _own_notes(cls: type) -> dict[str, str]:
    try:
        text = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # made in an interpreter, or shipped without source
        return {}
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")
    }
    body = ast.parse(text).body[0].body  # type: ignore[attr-defined]
    notes: dict[str, str] = {}
    for item, after in zip(body, [*body[1:], None]):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        note = said if isinstance(said, str) else comments.get(item.end_lineno or 0)
        if note:
            notes[item.target.id] = " ".join(note.split())
    return notes
