"""Components: registration, building from plain data, and messages."""

from typing import ClassVar, Literal

import pytest
from pydantic import Field

from sim.kernel.component import Component, Section, allowed, build, dump, nearest, show


class Shape(Component, family="test.shape", home="sim.kernel.errors"):
    """A shape."""


class Circle(Shape, kind="circle"):
    """A round one."""

    source: ClassVar[str] = "Euclid"
    radius: float = Field(1.0, gt=0)


class Square(Shape, kind="square"):
    """A square one."""

    side: int | Literal["auto"] = "auto"


class Drawing(Section):
    """Shapes on paper."""

    title: str = "untitled"
    main: Shape = Circle()
    others: list[Shape] = Field(default_factory=list)


def make(data):
    problems = []
    return build(Drawing, data, (), problems), [(p.where(), p.message) for p in problems]


def test_a_kind_is_chosen_by_its_name_and_survives_a_round_trip():
    drawing, problems = make({"main": {"kind": "square", "side": 3}, "others": [{"kind": "circle", "radius": 2}]})
    assert not problems and drawing.main == Square(side=3) and drawing.others == [Circle(radius=2.0)]
    again, problems = make(dump(drawing))
    assert not problems and again == drawing


def test_every_problem_is_found_at_once_with_its_path():
    _, problems = make(
        {"titel": 1, "main": {"kind": "square", "side": -0.5, "x": 1}, "others": [{"kind": "circel"}, {"radius": 1}, 5]}
    )
    where = dict(problems)
    assert "did you mean 'title'?" in where["titel"]
    assert where["main.side"] == "found -0.5 (a number); allowed: a whole number, or 'auto'"
    assert "unknown key 'x'" in where["main.x"]
    assert where["others.0.kind"].startswith("unknown kind 'circel'; allowed: circle, square; did you mean 'circle'?")
    assert where["others.1"] == "key 'kind' is missing; allowed: circle, square"
    assert where["others.2"].startswith("found 5 (a whole number); allowed: a mapping")


def test_an_omitted_kind_means_what_the_section_uses_by_default():
    drawing, problems = make({"main": {"radius": 4.0}})
    assert not problems and drawing.main == Circle(radius=4.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "2.0", 0, None])
def test_strict_numbers(value):
    _, problems = make({"main": {"kind": "circle", "radius": value}})
    assert len(problems) == 1 and problems[0][0] == "main.radius"


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="already"):
        type("Other", (Shape,), {"__module__": "elsewhere", "__doc__": "x"}, kind="circle")


def test_a_users_own_class_is_loaded_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "my_shapes.py").write_text(
        "from tests_shape_base import Shape\n\nclass Blob(Shape):\n    '''A blob.'''\n    size: float = 2.0\n"
    )
    (tmp_path / "tests_shape_base.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    import tests_shape_base

    tests_shape_base.Shape = Shape
    drawing, problems = make({"main": {"kind": "my_shapes:Blob", "size": 3.0}})
    assert not problems and drawing.main.size == 3.0 and dump(drawing)["main"]["kind"] == "my_shapes:Blob"
    for kind, message in (
        ("my_shapes:Nope", "cannot load"),
        ("no_module:X", "cannot load"),
        ("sys:path", "not a subclass"),
    ):
        _, problems = make({"main": {"kind": kind}})
        assert message in problems[0][1]


def test_words_for_values_and_annotations():
    assert show(True) == "true (true/false)" and show(None) == "null (nothing)" and show([1]) == "[1] (a list)"
    assert allowed(int | None) == "a whole number, or null"
    assert nearest("mean-gp", ["mean-gap", "none"]) == "; did you mean 'mean-gap'?" and nearest("zzz", ["a"]) == ""
