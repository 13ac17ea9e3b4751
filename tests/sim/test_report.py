"""Figures and page of a run and of a sweep: complete, self-contained, escaped."""

import re

import pytest
from sweeps import SWEEP, Here, write

import sim
from sim.cli import guarded
from sim.kernel.errors import InputError
from sim.sweep import run_sweep

pytest.importorskip("matplotlib", reason="extra [report] is not installed")
pytest.importorskip("jinja2", reason="extra [report] is not installed")

from sim.report import write_report

PNG = b"\x89PNG\r\n\x1a\n"


def images(page):
    return re.findall(r'<img src="([^"]{0,30})', page)


def test_a_run(tmp_path, capsys):
    scenario = write(tmp_path, anchors="last").parent / "tiny.yaml"
    sim.run(scenario, tmp_path / "run", name="<b>bold</b>")
    assert guarded(["report", str(tmp_path / "run")]) == 0
    assert "report.html" in capsys.readouterr().out
    page = (tmp_path / "run" / "report.html").read_text()
    figures = sorted(file.stem for file in (tmp_path / "run" / "figures").iterdir())
    assert figures == ["accuracy", "detection", "edges", "epsilon", "time"]
    assert all(file.read_bytes().startswith(PNG) for file in (tmp_path / "run" / "figures").iterdir())
    assert len(images(page)) == 5 and all(i.startswith("data:image/png;base64,") for i in images(page))
    assert "http" not in page and "<script" not in page
    assert "&lt;b&gt;bold" in page and "<b>bold" not in page
    assert "no ties at all" in page and "2 rounds, seed 3" in page


def test_a_sweep_over_numbers_and_one_over_kinds(tmp_path):
    run_sweep(write(tmp_path), tmp_path / "numbers", Here())
    page = write_report(tmp_path / "numbers").read_text()
    assert "2 points, 3 seeds" in page and "Differences from the reference" in page and "Runs without" not in page
    assert len(images(page)) == len(list((tmp_path / "numbers" / "figures").iterdir())) >= 4
    kinds = {**SWEEP, "seeds": 1, "axes": {"server.suspicion.kind": ["mean-gap", "none"]}, "reference": None}
    run_sweep(write(tmp_path, kinds), tmp_path / "kinds", Here())
    page = write_report(tmp_path / "kinds").read_text()
    assert "suspicion=mean-gap" in page and "Differences" not in page


def test_an_unfinished_run_and_unfinished_sweep_say_so(tmp_path):
    plan = write(tmp_path)
    result = run_sweep(plan, tmp_path / "out", Here())
    key = result.rounds["run"].iloc[0]
    (tmp_path / "out" / "runs" / key / "summary.json").unlink()
    assert "the run is not finished" in write_report(tmp_path / "out" / "runs" / key).read_text()
    from sim.sweep.conduct import conclude, prepare

    conclude(prepare(result.plan, tmp_path / "out"), {})
    assert "Runs without a result" in write_report(tmp_path / "out").read_text()


def test_folders_without_anything_to_report(tmp_path, capsys):
    assert guarded(["report", str(tmp_path)]) == 2
    assert "found neither a run" in capsys.readouterr().err
    scenario = write(tmp_path).parent / "tiny.yaml"
    sim.run(scenario, tmp_path / "run")
    header = (tmp_path / "run" / "rounds.csv").read_text().splitlines()[0]
    (tmp_path / "run" / "rounds.csv").write_text(header + "\n")
    with pytest.raises(InputError, match="no round is finished"):
        write_report(tmp_path / "run")


def test_without_the_extra_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    import sys

    scenario = write(tmp_path).parent / "tiny.yaml"
    sim.run(scenario, tmp_path / "run", rounds=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'graphwarden\[report\]'"):
        write_report(tmp_path / "run")
