"""What a strategy may know, and how a group is described."""

import gc
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from coalitions import HONEST, coalition, group, opened, problems_of, view
from scipy import sparse

from agents.coalition import Coalition
from agents.protocol import Feedback
from agents.strategies.base import AttackerGroup, Granted, KnowledgeError
from sim.kernel.component import FAMILIES, add_plugin_folder, build, dump
from sim.kernel.randomness import Streams

SECRETS = Granted(
    degrees=np.arange(HONEST, dtype=np.int64) * 7,
    labels=np.arange(60, dtype=np.int64) % 3,
    graph=sparse.csr_array(np.eye(60, k=1, dtype=np.int8) + np.eye(60, k=-1, dtype=np.int8)),
)


@pytest.mark.parametrize("name", ["degrees", "labels", "graph", "feedback"])
def test_asking_without_a_grant_names_the_grant(name):
    with pytest.raises(
        KnowledgeError, match=f"asks for '{name}' but holds only protocol; add '{name}' to its `knowledge`"
    ):
        getattr(view(granted=SECRETS), name)()


def test_a_grant_opens_exactly_what_it_names():
    seen = view(granted=SECRETS, knowledge=["protocol", "degrees"])
    assert (seen.degrees() == SECRETS.degrees).all()
    with pytest.raises(KnowledgeError, match="asks for 'labels' but holds only degrees, protocol"):
        seen.labels()
    assert (view(granted=SECRETS, knowledge=["protocol", "labels"]).labels() == SECRETS.labels).all()
    assert view(granted=SECRETS, knowledge=["protocol", "graph"]).graph().nnz == 118


def test_features_are_never_opened():
    everything = ["protocol", "degrees", "feedback", "labels", "graph"]
    with pytest.raises(KnowledgeError, match="no `knowledge` grant opens those"):
        view(granted=SECRETS, knowledge=everything).features()


def test_a_grant_that_the_run_cannot_fill_says_so():
    with pytest.raises(KnowledgeError, match="'graph' is granted, but this run has nothing to give"):
        view(knowledge=["protocol", "graph"]).graph()


def test_feedback_goes_back_round_by_round_and_holds_members_only():
    attackers = coalition(knowledge=["protocol", "feedback"])
    assert attackers.view(opened(1)).feedback() == {}
    nobody = np.empty(0, dtype=np.int64)
    attackers.plan(opened(1))
    attackers.plan(opened(2), {54: Feedback(True, nobody), 3: Feedback(True, nobody)})
    attackers.plan(opened(3), {55: Feedback(False, nobody)})
    seen = attackers.view(opened(4))
    assert [set(seen.feedback(ago)) for ago in (0, 1, 2)] == [{55}, {54}, set()]
    assert [past.round for past in seen.history] == [1, 2, 3]


def reachable(start):
    """Every object that can be reached from one, code and modules aside."""
    code = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, types.CodeType, types.FrameType)
    seen, queue = {}, [start]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, code):
            continue
        seen[id(thing)] = thing
        queue += gc.get_referents(thing)
    return list(seen.values())


def test_nothing_reachable_from_a_view_leads_to_what_was_not_granted():
    streams = Streams(20260101)
    attackers = Coalition(group(), np.arange(54, 60), streams, SECRETS)
    for round in (1, 2):
        attackers.plan(opened(round), {54: Feedback(True, np.array([1, 2]))})
    found = reachable(attackers.view(opened(3)))
    assert any(thing is attackers.members for thing in found)  # the walk does arrive at arrays
    hidden = [SECRETS, SECRETS.degrees, SECRETS.labels, SECRETS.graph, SECRETS.graph.indices, streams, attackers]
    assert not [thing for thing in found if any(thing is secret for secret in hidden)]
    assert not [thing for thing in found if isinstance(thing, Feedback)]
    assert [thing.seed for thing in found if isinstance(thing, Streams)] != [streams.seed]
    assert streams.seed not in [thing for thing in found if type(thing) is int]


def test_the_walk_does_find_what_is_granted():
    found = reachable(view(granted=SECRETS, knowledge=["protocol", "graph"]))
    assert any(thing is SECRETS.graph for thing in found)
    assert not any(thing is SECRETS.degrees for thing in found)


def test_the_order_of_others_says_nothing_about_who_is_honest():
    seen = coalition(6, 5000).view(
        opened(protocol=view().protocol.__class__(**{**vars(view().protocol), "participants": 5006}))
    )
    assert sorted(seen.others.tolist()) == list(range(5000))
    rank = np.corrcoef(np.arange(5000), seen.others)[0, 1]
    assert abs(rank) < 4 / np.sqrt(5000)
    with pytest.raises(ValueError, match="read-only"):
        seen.others[0] = 1


# Groups --------------------------------------------------------------------------------------------------------------


def test_the_default_group_is_devils_hand():
    assert dump(AttackerGroup()) == {
        "name": "attackers",
        "share": 0.01,
        "count": None,
        "features": {"kind": "extreme", "sign": "positive"},
        "targets": {"kind": "cyclic", "per_attacker": 12},
        "ties": {"kind": "degree-preserving"},
        "claims": {"kind": "maximal", "channel": "compliant", "spurious": "maximal"},
        "timing": {"kind": "always", "idle": "silent"},
        "knowledge": ["protocol"],
        "labels": "none",
    }
    assert build(AttackerGroup, dump(AttackerGroup()), (), []) == AttackerGroup()


def test_size_is_a_share_of_the_honest_users_or_a_count():
    assert AttackerGroup().size(2708) == 27
    assert group(share=0.005).size(2708) == 14
    assert group(share=0.0).size(2708) == 0
    assert group(count=5).size(2708) == 5


def test_what_a_group_may_not_say():
    assert "found both share: 0.1 and count: 3; allowed: one of the two" in problems_of(share=0.1, count=3)
    assert "knowledge lacks 'protocol'" in problems_of(knowledge=["graph"])
    needs = problems_of(targets={"kind": "high-degree"})
    assert "targets kind 'high-degree' needs the grant 'degrees'; add it to `knowledge`" in needs
    assert "claims kind 'adaptive' needs the grant 'feedback'" in problems_of(claims={"kind": "adaptive"})
    assert "allowed: 'compliant' | 'bypass' | 'camouflage'" in problems_of(
        claims={"kind": "maximal", "channel": "bypas"}
    )
    assert "did you mean 'cyclic'" in problems_of(targets={"kind": "cyclik"})
    assert (
        problems_of(share=1.5) and problems_of(count=-1) and problems_of(targets={"kind": "cyclic", "per_attacker": 0})
    )


def test_a_part_without_a_kind_means_the_default_kind():
    assert group(claims={"channel": "bypass"}).claims.kind == "maximal"
    assert group(targets={"per_attacker": 3}).targets.kind == "cyclic"


def test_every_kind_says_what_it_is_and_where_it_comes_from():
    for name in ("features", "targets", "ties", "claims", "timing"):
        kinds = list(FAMILIES[f"attack.{name}"].classes())
        assert len(kinds) >= 5
        for kind in kinds:
            assert kind.__doc__ and kind.source, kind


# Plugins -------------------------------------------------------------------------------------------------------------

BROKEN = """
import numpy as np
from agents.strategies.base import TargetStrategy


class Broken(TargetStrategy):
    def choose(self, view):
        return {answer}
"""


def test_the_documented_strategy_works_beside_a_scenario(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "attackers.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    (tmp_path / "my_attack.py").write_text(code)
    monkeypatch.setattr("sys.path", [*sys.path])
    add_plugin_folder(str(tmp_path))
    attackers = coalition(targets={"kind": "my_attack:OneCircle", "many": 3})
    plan = attackers.plan(opened())
    assert len(plan.victims) == 3 and len(plan.asked[0]) == 18
    assert dump(attackers.spec.targets) == {"kind": "my_attack:OneCircle", "many": 3}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("np.array([0]), np.array([59])", "nobody outside the coalition has"),
        ("np.array([6]), np.array([1])", r"found members 6 to 6; expected 0\.\.5"),
        ("np.array([0, 0]), np.array([1, 1])", "asks the same target twice"),
        ("np.array([0, 0]), np.array([1])", "expected two arrays of one length"),
    ],
)
def test_a_strategy_that_breaks_the_contract_is_told(tmp_path, monkeypatch, answer, message):
    name = "broken_" + "".join(letter for letter in message if letter.isalpha())
    (tmp_path / f"{name}.py").write_text(BROKEN.format(answer=answer))
    monkeypatch.setattr("sys.path", [*sys.path])
    add_plugin_folder(str(tmp_path))
    with pytest.raises(ValueError, match=message):
        coalition(targets={"kind": f"{name}:Broken"}).plan(opened())
