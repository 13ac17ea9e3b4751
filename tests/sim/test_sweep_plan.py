"""A sweep file becomes points, seeds and comparisons; bad files are named with their line."""

import pytest
from sweeps import SWEEP, write

from sim.kernel.errors import InputError
from sim.sweep.plan import label, read_plan, short_keys


def plan(tmp_path, text, **scenario):
    return read_plan(write(tmp_path, text, **scenario))


def test_a_grid_is_the_product_of_its_axes_in_order(tmp_path):
    made = plan(
        tmp_path,
        "scenario: tiny.yaml\nseeds: [5, 2]\nset: {rounds: 1}\n"
        "axes: {population.attackers.0.count: [0, 4], server.suspicion.kind: [mean-gap, none]}\n",
    )
    assert [p.name for p in made.points] == [
        "count=0, suspicion=mean-gap",
        "count=0, suspicion=none",
        "count=4, suspicion=mean-gap",
        "count=4, suspicion=none",
    ]
    assert made.axes == ("population.attackers.0.count", "server.suspicion.kind") and made.seeds == (5, 2)
    last = made.points[-1].scenario
    assert (last.population.attackers[0].count, last.server.suspicion.kind, last.rounds) == (4, "none", 1)
    assert [(r.point.name, r.seed) for r in made.runs()][:2] == [(p.name, 5) for p in made.points[:2]]
    assert {r.scenario.seed for r in made.runs()} == {2, 5} and len(made.runs()) == 8


def test_zip_walks_the_axes_side_by_side(tmp_path):
    axes = "axes: {privacy.ties.epsilon: [3.0, 5.0], privacy.ties.levels: [1, 2]}"
    made = plan(tmp_path, f"scenario: tiny.yaml\nzip: true\n{axes}\n")
    ties = [p.scenario.privacy.ties for p in made.points]
    assert [(t.epsilon, t.levels) for t in ties] == [(3.0, 1), (5.0, 2)]


def test_a_number_of_seeds_counts_from_the_scenarios_own(tmp_path):
    assert plan(tmp_path, SWEEP).seeds == (3, 4, 5)
    assert plan(tmp_path, {"scenario": "tiny.yaml", "seeds": 2}, seed=10).points[0].name == "tiny"


def test_explicit_points_are_named_by_the_file_or_by_their_settings(tmp_path):
    named = "points:\n  bare: {server.suspicion.kind: none}\n  full: {}\nreference: bare\n"
    made = plan(tmp_path, "scenario: tiny.yaml\n" + named)
    assert [p.name for p in made.points] == ["bare", "full"] and made.references == {"full": "bare"}
    assert made.points[1].scenario.server.suspicion.kind == "mean-gap"
    listed = plan(tmp_path, "scenario: tiny.yaml\npoints: [{rounds: 1}, {rounds: 3, name: other}]\n")
    assert [p.name for p in listed.points] == ["rounds=1", "rounds=3, name=other"]


def test_a_new_kind_keeps_what_it_knows_and_drops_the_rest_with_a_note(tmp_path):
    made = plan(tmp_path, "scenario: tiny.yaml\naxes: {server.pruning.kind: [threshold, none]}\n")
    assert made.points[0].scenario.server.pruning.gamma == 0.4
    assert made.points[1].scenario.server.pruning.kind == "none"
    assert len(made.notes) == 1 and "'gamma'" in made.notes[0]


def test_an_axis_may_hold_whole_sections(tmp_path):
    made = plan(
        tmp_path, "scenario: tiny.yaml\naxes: {server.pruning: [{kind: none}, {kind: threshold, gamma: 0.1}]}\n"
    )
    assert [p.scenario.server.pruning.kind for p in made.points] == ["none", "threshold"]
    assert made.points[0].name == 'pruning={"kind": "none"}'


def test_the_scenario_is_found_beside_the_sweep_or_by_its_absolute_path(tmp_path, monkeypatch):
    file = write(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert read_plan("a/sweep.yaml").scenario_folder == tmp_path / "a"
    absolute = tmp_path / "sweep.yaml"
    absolute.write_text(file.read_text().replace("tiny.yaml", str(tmp_path / "a" / "tiny.yaml")))
    assert read_plan(absolute).points == read_plan(file).points


def test_a_partial_reference_is_taken_under_the_same_other_settings(tmp_path):
    made = plan(
        tmp_path,
        "scenario: tiny.yaml\naxes: {population.attackers.0.count: [0, 4], server.suspicion.kind: [mean-gap, none]}\n"
        "reference: {server.suspicion.kind: none}\n",
    )
    assert made.references == {
        "count=0, suspicion=mean-gap": "count=0, suspicion=none",
        "count=4, suspicion=mean-gap": "count=4, suspicion=none",
    }


def test_short_keys_are_the_shortest_endings_that_differ():
    keys = ["server.suspicion.kind", "server.pruning.gamma", "privacy.ties.epsilon", "privacy.features.epsilon"]
    short = short_keys(keys)
    assert list(short.values()) == ["suspicion", "gamma", "ties.epsilon", "features.epsilon"]
    assert label({keys[1]: 0.5, keys[0]: "none"}, short) == "gamma=0.5, suspicion=none"
    assert label({"privacy.lifetime_epsilon": None}, {"privacy.lifetime_epsilon": "x"}) == "x=null"


BAD = [
    ("axes: {server.suspicoin.kind: [none]}", 2, "unknown key 'suspicoin'", "did you mean 'suspicion'"),
    ("axes: {server.suspicion.kind: [none, combind]}", 2, "unknown kind 'combind'", "allowed: "),
    ("axes:\n  rounds: [1]\n  population.attackers.0.share: [0.1, 7]", 4, "found 7", "<= 1"),
    ("axes: {rounds: []}", 2, "empty list", "at least one"),
    ("axes: {rounds: 3}", 2, "found 3", "a list of values"),
    ("axes: {rounds: [1, 2, 1]}", 2, "more than once", "distinct"),
    ("set: {rounds: 1}\naxes: {rounds: [1, 2]}", 3, "clashes with `set`", "'rounds'"),
    (
        "set: {server.pruning: {kind: none}}\naxes: {server.pruning.kind: [none]}",
        3,
        "clashes with `set`",
        "server.pruning",
    ),
    ("axes: {server.pruning: [{kind: none}], server.pruning.kind: [none]}", 2, "part of the other", "server.pruning"),
    ("axes: {seed: [1, 2]}", 2, "found a seed", "`seeds`"),
    ("seeds: []", 2, "empty list", "at least one seed"),
    ("seeds: 0", 2, "found 0", ">= 1"),
    ("seeds: true", 2, "found true", "a whole number"),
    ("seeds: [1, 1]", 2, "1 more than once", "distinct"),
    ("seeds: [1, -1]", 2, "found -1", "0 <= seed"),
    ("zip: true\naxes: {rounds: [1, 2], name: [a]}", 2, "different lengths", "rounds has 2, name has 1"),
    ("axes: {rounds: [1]}\npoints: {a: {}}", 3, "both `axes` and `points`", "one of them"),
    ("points: {a: 3}", 2, "found 3", "a mapping"),
    ("points: [{rounds: 1}, {rounds: 1}]", 2, "same settings twice", "distinct"),
    ("axis: {rounds: [1]}", 2, "unknown key 'axis'", "did you mean 'axes'"),
    ("axes: {population.attackers.3.count: [1]}", 2, "has 1 items", "index 3"),
    ("axes: {rounds: [1, 2]}\nreference: rounds=9", 3, "found 'rounds=9'", "rounds=1, rounds=2"),
    ("axes: {rounds: [1, 2]}\nreference: {round: 1}", 3, "unknown key 'round'", "did you mean 'rounds'"),
    ("axes: {rounds: [1, 2]}\nreference: {rounds: 5}", 3, "found 5", "some point has"),
    ("axes: {rounds: [1, 2]}\nequivalence: {test_accuracy: 0.01}", 3, "without a `reference`", "reference point"),
    (
        "axes: {rounds: [1, 2]}\nreference: rounds=1\nequivalence: {tst_accuracy: 0.01}",
        4,
        "unknown column",
        "test_accuracy",
    ),
    ("axes: {rounds: [1, 2]}\nreference: rounds=1\nequivalence: {test_accuracy: 0}", 4, "found 0", "a number > 0"),
]


@pytest.mark.parametrize(("text", "line", "found", "allowed"), BAD, ids=[b[0].replace("\n", "; ") for b in BAD])
def test_every_mistake_is_named_with_its_line(tmp_path, text, line, found, allowed):
    with pytest.raises(InputError) as error:
        plan(tmp_path, f"scenario: tiny.yaml\n{text}\n")
    message = str(error.value)
    assert f"sweep.yaml:{line}: " in message and found in message and allowed in message


def test_a_key_that_the_new_kind_lacks_is_an_error_when_the_sweep_sets_it(tmp_path):
    text = "scenario: tiny.yaml\nset: {server.pruning.gamma: 0.2}\naxes: {server.pruning.kind: [threshold, none]}\n"
    with pytest.raises(InputError, match=r"sweep.yaml:2: server.pruning.gamma: unknown key 'gamma'"):
        plan(tmp_path, text)


def test_settings_that_do_not_fit_together_name_the_point(tmp_path):
    text = "scenario: tiny.yaml\naxes: {graph.dimensions: [30, 20]}\n"
    with pytest.raises(InputError, match=r"sweep.yaml:2: point 'dimensions=20': graph: words 12 of 20 dimensions"):
        plan(tmp_path, text)


def test_all_problems_come_at_once_and_each_only_once(tmp_path):
    text = "scenario: tiny.yaml\nset: {rounds: 0}\naxes:\n  server.suspicion.kind: [mean-gap, nonsense]\n  network.loss: [2.0, 0.0]\n"
    with pytest.raises(InputError) as error:
        plan(tmp_path, text)
    lines = str(error.value).splitlines()
    assert [line.split("sweep.yaml:")[1][0] for line in lines] == ["2", "4", "5"]


def test_a_missing_scenario_and_a_bad_one(tmp_path):
    file = write(tmp_path, {**SWEEP, "scenario": "gone.yaml"})
    with pytest.raises(InputError, match=r"sweep.yaml:1: scenario: found 'gone.yaml'; no such file"):
        read_plan(file)
    with pytest.raises(InputError, match=r"tiny.yaml:\d+: rounds: found 0"):
        read_plan(write(tmp_path, SWEEP, rounds=0))
    with pytest.raises(InputError, match="key 'scenario' is missing"):
        plan(tmp_path, "seeds: 3\n")
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "nowhere.yaml")


def test_graph_files_are_found_beside_the_scenario_and_missing_ones_named(tmp_path):
    write(tmp_path / "a", SWEEP)
    (tmp_path / "a" / "edges.csv").write_text("source,target\n0,1\n1,2\n2,0\n")
    (tmp_path / "a" / "labels.csv").write_text("id,label\n0,x\n1,y\n2,x\n")
    graph = "{source: file, path: edges.csv, labels: LABELS}"
    text = f"scenario: ../a/tiny.yaml\nset: {{population.attackers: []}}\naxes:\n  graph: [{graph}]\n"
    (tmp_path / "b").mkdir()
    file = tmp_path / "b" / "sweep.yaml"
    file.write_text(text.replace("LABELS", "labels.csv"))
    assert read_plan(file).points[0].scenario.graph.path == str(tmp_path / "a" / "edges.csv")
    file.write_text(text.replace("LABELS", "gone.csv"))
    with pytest.raises(InputError, match=r"sweep.yaml:4: graph.source: labels: no such file"):
        read_plan(file)
