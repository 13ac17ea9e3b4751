"""Things a scenario names by `kind`: one base class, typed fields, one verb, one registry.

A *family* is a base class such as `Suspicion`; a *kind* is one concrete subclass of it. A kind registers itself when
its module is imported, and a family imports every module of its home package the first time it is asked, so adding
a component touches one file. Modules of components import nothing heavier than numpy and scipy.sparse at top level.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
import traceback
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

Path = tuple[str | int, ...]


class Section(BaseModel):
    """A group of typed, named settings. Strict: no unknown key, no coercion, no NaN or infinity."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        validate_default=True,
    )


class Component(Section):
    """Base of everything that a scenario names by `kind` (see the module docstring).

    Class keywords: a family base passes `family="server.suspicion", home="server.suspicion"` (and `tag` when its key
    is not called `kind`); a concrete class passes `kind="mean-gap"`. `source` names the paper or derivation. A family
    base may set `default_kind`: what an omitted `kind` means.
    """

    kind: ClassVar[str] = ""
    default_kind: ClassVar[str] = ""
    source: ClassVar[str] = ""
    _family: ClassVar[Family]

    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(
        cls, family: str | None = None, home: str | None = None, tag: str = "kind", kind: str | None = None, **_: Any
    ) -> None:
        if family is not None:
            cls._family = Family(family, cls, home or cls.__module__, tag)
            FAMILIES[family] = cls._family
        if kind is not None:
            cls.kind = kind
            cls._family.register(kind, cls)

    @classmethod
    def is_family(cls) -> bool:
        """Whether this class is the base of a family rather than one of its kinds."""
        return "_family" in cls.__dict__ and cls._family.base is cls

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        if not cls.is_family():
            return dict(handler(core_schema))
        options = []
        for kind in cls._family.classes():
            schema = handler.resolve_ref_schema(handler(kind.__pydantic_core_schema__))
            tag = cls._family.tag
            named = [] if kind.kind == cls.default_kind else [tag]
            options.append(
                {
                    **schema,
                    "title": kind.kind,
                    "description": summary_line(kind),
                    "properties": {tag: {"const": kind.kind}, **schema.get("properties", {})},
                    "required": [*named, *schema.get("required", [])],
                }
            )
        own = {  # a user's own class: its keys are checked when it is loaded
            "title": "package.module:Class",
            "properties": {cls._family.tag: {"type": "string", "pattern": ":"}},
            "required": [cls._family.tag],
        }
        return {"anyOf": [*options, own], "description": summary_line(cls)}


@dataclass
class Family:
    """All kinds of one component family, found by importing every module of `home`."""

    name: str
    base: type[Component]
    home: str
    tag: str
    kinds: dict[str, type[Component]] = field(default_factory=dict)
    loaded: bool = False

    def register(self, kind: str, cls: type[Component]) -> None:
        """Add a kind. Raises ValueError when another class already holds the name."""
        held = self.kinds.get(kind)
        if held is not None and (held.__module__, held.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"{self.name} kind {kind!r} is already {held.__module__}.{held.__qualname__}")
        self.kinds[kind] = cls

    def load(self) -> None:
        """Import every module of the home package once, so that all its kinds are registered."""
        if self.loaded:
            return
        self.loaded = True
        home = importlib.import_module(self.home)
        for module in pkgutil.iter_modules(getattr(home, "__path__", [])):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.home}.{module.name}")

    def classes(self) -> Iterator[type[Component]]:
        """Every kind's class, by name."""
        self.load()
        return (self.kinds[k] for k in sorted(self.kinds))

    def resolve(self, kind: str) -> type[Component]:
        """The class of `kind`, or of a user's own `package.module:Class`. Raises LookupError with a full message."""
        if ":" in kind:
            return self._plugin(kind)
        self.load()
        if kind in self.kinds:
            return self.kinds[kind]
        raise LookupError(
            f"unknown {self.tag} {kind!r}; allowed: {', '.join(sorted(self.kinds))}{nearest(kind, self.kinds)}"
        )

    def _plugin(self, kind: str) -> type[Component]:
        module_name, _, class_name = kind.partition(":")
        try:
            found = getattr(importlib.import_module(module_name), class_name)
        except (ImportError, AttributeError, ValueError, SyntaxError) as error:
            raise LookupError(
                f"cannot load {kind!r}: {error} (looked beside the scenario and on the Python path)"
            ) from error
        except Exception as error:  # whatever the user's module does when it is imported
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise LookupError(
                f"cannot load {kind!r}: {type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
            ) from error
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise LookupError(f"{kind!r} is not a subclass of {self.base.__module__}.{self.base.__qualname__}")
        if not found.kind or ":" not in found.kind:
            found.kind = kind
        return found


FAMILIES: dict[str, Family] = {}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a scenario: where (a path of keys), and a sentence with what was found and is allowed."""

    path: Path
    message: str

    def where(self) -> str:
        """The path as a user writes it: `population.attackers.0.share`."""
        return ".".join(str(p) for p in self.path) or "the file"


def summary_line(cls: type) -> str:
    """First paragraph of a docstring, on one line."""
    return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())


def nearest(name: str, known: Any) -> str:
    """`; did you mean 'x'?` for the closest known name, or nothing."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def add_plugin_folder(folder: str) -> None:
    """Let `kind: module:Class` find modules in `folder` (appended, so that nothing installed is shadowed)."""
    if folder not in sys.path:
        sys.path.append(folder)


def show(value: Any) -> str:
    """A found value with its type in plain words, short enough for one line."""
    if isinstance(value, BaseModel):
        return f"a {type(value).__name__}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if len(str(value)) > 60 else f"{list(value)!r} (a list)"
    name = {bool: "true/false", str: "text", int: "a whole number", float: "a number", type(None): "nothing"}
    text = "true" if value is True else "false" if value is False else "null" if value is None else repr(value)
    return f"{text[:60]} ({name.get(type(value), type(value).__name__)})"


def allowed(annotation: Any, metadata: typing.Sequence[Any] = ()) -> str:
    """What a field accepts, in words: `a number > 0`, `a whole number >= 1, or 'auto'`."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        base, *extra = typing.get_args(annotation)
        return allowed(base, extra)
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(allowed(a, metadata if a in (int, float) else ()) for a in typing.get_args(annotation))
    if origin is typing.Literal:
        return " | ".join(repr(a) if isinstance(a, str) else str(a).lower() for a in typing.get_args(annotation))
    if origin in (list, tuple):
        inner = [a for a in typing.get_args(annotation) if a is not Ellipsis]
        return f"a list of {allowed(inner[0]) if inner else 'values'}"
    if origin is dict:
        return "a mapping"
    names: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a mapping"
    limits = []
    for item in metadata:
        for attribute, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")):
            if getattr(item, attribute, None) is not None:
                limits.append(f"{sign} {getattr(item, attribute)}")
        if getattr(item, "min_length", None):
            limits.append(f"at least {item.min_length} long")
    return f"{names.get(annotation, str(annotation))} {' and '.join(limits)}".strip()


def _nested(annotation: Any) -> tuple[type[Section] | None, bool]:
    """(section class, is a list of them) for a field annotation, looking through Optional and Annotated."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated or origin in (typing.Union, types.UnionType):
        for arg in typing.get_args(annotation):
            found = _nested(arg)
            if found[0] is not None:
                return found
        return None, False
    if origin in (list, tuple):
        inner = _nested(typing.get_args(annotation)[0])[0]
        return inner, inner is not None
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    return None, False


def build(cls: type[Section], data: Any, path: Path, problems: list[Problem], usual: str = "") -> Any:
    """Make a `cls` from plain data, adding every problem found below `path`; None if there was one.

    A family base is replaced by the class that its tag names; an omitted tag means the kind that the enclosing section
    uses by default (`usual`), if any. Nested sections are built first, so one bad value hides no other.
    """
    if isinstance(data, cls):
        return data
    if not isinstance(data, Mapping):
        problems.append(
            Problem(path, f"found {show(data)}; allowed: a mapping with {', '.join(_keys(cls)) or 'no keys'}")
        )
        return None
    values = dict(data)
    if issubclass(cls, Component) and cls.is_family():
        family = cls._family
        usual = usual or family.base.default_kind
        if family.tag not in values and not usual:
            family.load()
            problems.append(Problem(path, f"key {family.tag!r} is missing; allowed: {', '.join(sorted(family.kinds))}"))
            return None
        kind = values.pop(family.tag, usual)
        try:
            if not isinstance(kind, str):
                family.load()
                raise LookupError(f"found {show(kind)}; allowed: {', '.join(sorted(family.kinds))}")
            cls = family.resolve(kind)
        except LookupError as error:
            problems.append(Problem((*path, family.tag), str(error)))
            return None
    failed: set[str] = set()
    for name, info in cls.model_fields.items():
        if name not in values or values[name] is None:
            continue
        inner, many = _nested(info.annotation)
        before = len(problems)
        if inner is None:
            continue
        if many and isinstance(values[name], list):
            values[name] = [build(inner, item, (*path, name, i), problems) for i, item in enumerate(values[name])]
        elif not many and (not isinstance(values[name], str | int | float | bool) or _only_section(info.annotation)):
            usual = info.default.kind if isinstance(info.default, Component) else ""
            values[name] = build(inner, values[name], (*path, name), problems, usual)
        if len(problems) > before:
            failed.add(name)
    try:
        made = cls.model_validate(values)
    except ValidationError as error:
        _explain(cls, error, path, values, failed, problems)
        return None
    return None if failed else made


def _only_section(annotation: Any) -> bool:
    args = typing.get_args(annotation)
    return not any(a in (str, int, float, bool) or typing.get_origin(a) is typing.Literal for a in args)


def _keys(cls: type[Section]) -> list[str]:
    tag = [cls._family.tag] if issubclass(cls, Component) and hasattr(cls, "_family") else []
    return [*tag, *cls.model_fields]


def _explain(
    cls: type[Section],
    error: ValidationError,
    path: Path,
    values: dict[str, Any],
    failed: set[str],
    problems: list[Problem],
) -> None:
    seen: set[str] = set()
    for item in error.errors(include_url=False):
        where = item["loc"]
        if not where:
            problems.append(Problem(path, str(item["msg"]).removeprefix("Value error, ")))
            continue
        name = str(where[0])
        if name in failed or name in seen:
            continue
        seen.add(name)
        here = (*path, name)
        info: FieldInfo | None = cls.model_fields.get(name)
        if item["type"] == "extra_forbidden" or info is None:
            keys = _keys(cls)
            problems.append(Problem(here, f"unknown key {name!r}; allowed: {', '.join(keys)}{nearest(name, keys)}"))
        elif item["type"] == "missing":
            problems.append(
                Problem(path, f"key {name!r} is missing; allowed: {allowed(info.annotation, info.metadata)}")
            )
        elif item["type"] == "value_error":
            problems.append(Problem(here, str(item["msg"]).removeprefix("Value error, ")))
        else:
            found = values.get(name)
            hint = nearest(found, _literals(info.annotation)) if isinstance(found, str) else ""
            finite = "finite, " if item["type"] == "finite_number" else ""
            wanted = f"{finite}{allowed(info.annotation, info.metadata)}{hint}"
            problems.append(Problem(here, f"found {show(found)}; allowed: {wanted}"))


def _literals(annotation: Any) -> list[str]:
    if typing.get_origin(annotation) is typing.Literal:
        return [a for a in typing.get_args(annotation) if isinstance(a, str)]
    return [name for arg in typing.get_args(annotation) for name in _literals(arg)]


def dump(value: Any) -> Any:
    """Plain data (dicts, lists, scalars) that `build` turns back into an equal section."""
    if isinstance(value, Section):
        tag = {value._family.tag: value.kind} if isinstance(value, Component) else {}
        return {**tag, **{name: dump(getattr(value, name)) for name in type(value).model_fields}}
    if isinstance(value, (list, tuple)):
        return [dump(item) for item in value]
    if isinstance(value, dict):
        return {key: dump(item) for key, item in value.items()}
    return value
