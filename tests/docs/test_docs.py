"""Every command of the README and the documentation runs, every link leads somewhere, and what is generated is current.

Each page is a session in a folder of its own, with a copy of the scenarios beside it: its files are written, its commands
run in order. The quick test appends cheap overrides to `run` (two epochs, no anchors), and only reads what a `sweep`,
an `audit` or a `tune` would work on; the slow one runs everything as printed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import typer.main
from docpages import PAGES, ROOT, anchors, inline_commands, invocations, links, steps

from sim import document
from sim.cli import app, guarded, overrides
from sim.scenario import load

OWN_FILES = {
    "graphwarden compare runs/monday runs/tuesday",
    "graphwarden tune search.yaml --out runs/tuned",
}
"""Commands on files that only the reader has; their options are checked."""

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
with_python = [page for page in PAGES if any(step.kind == "python" for step in steps(page))]


class Session:
    """A reader at work on one page."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys
        self.absent: list[str] = []  # what commands that were only read would have written
        shutil.copytree(ROOT / "scenarios", folder / "scenarios")
        tools = folder / ".tools"
        tools.mkdir()
        for name, arguments in (("python", '"$@"'), ("graphwarden", '-c "from sim.cli import main; main()" "$@"')):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}\n')
            (tools / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "MPLBACKEND": "Agg",
        }

    def write(self, step):
        (self.folder / step.name).write_text(step.text)

    def shell(self, text):
        """(exit code, output) of a shell command."""
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1200,
        )
        return done.returncode, done.stdout

    def quick(self, text):
        """(exit code, output) of a command made cheap, or None for one whose input was not made."""
        if any(re.search(rf"(^|\s){re.escape(folder)}(/|\s|$)", text) for folder in self.absent):
            return None
        if not text.startswith("graphwarden ") or re.search(r"[<>|]", text):
            return self.shell(text)
        arguments = cheap(shlex.split(text, comments=True)[1:], self.absent)
        if arguments is None:
            return 0, ""
        self.capsys.readouterr()
        code = guarded(arguments)
        said = self.capsys.readouterr()
        return code, said.out + said.err


def cheap(arguments, absent):
    """The same command made cheap; None when reading its input is all that the quick test does."""
    if arguments[0].startswith("-"):
        return arguments
    parsed = parse(arguments)
    command = arguments[0]
    if command == "run" and parsed["scenario"] is not None:
        scenario = load(parsed["scenario"], overrides(parsed["settings"], parsed["seed"])).scenario
        more = ["anchors=none", f"rounds={min(scenario.rounds, 2)}"]
        more += ["server.training.epochs=2"] * (scenario.server.training.kind == "gnn")
        more += ["server.denoising.hops=1"] * (scenario.server.denoising.kind == "dual")
        return [*arguments, *(part for setting in more for part in ("--set", setting))]
    if command == "sweep":
        from sim.sweep import read_plan

        plan = read_plan(parsed["file"])
        absent.append(str(parsed["out"] or f"runs/{plan.name}"))
        return None
    if command == "audit":
        load(parsed["scenario"], overrides(parsed["settings"], parsed["seed"]))
        return None
    return arguments


def parse(arguments):
    """The options of a command line, checked as the command itself checks them."""
    command = typer.main.get_command(app).commands[arguments[0]]
    return command.make_context(arguments[0], list(arguments[1:])).params


def check(page, step, answer):
    """Compare the exit code, and the output where the page says that it is exact."""
    code, said = answer
    assert code == step.expected, f"{page.name}: {step.text}\nleft with {code}\n{said}"
    printed = [line.rstrip() for line in said.splitlines()]
    missing = [line for line in step.output if line.strip() and line.rstrip() not in printed]
    assert not missing, f"{page.name}: {step.text}\ndoes not print {missing[0]!r}, but\n{said}"


@pytest.fixture
def session(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield Session(tmp_path, capsys)
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@by_page
def test_every_command_runs(page, session):
    for step in steps(page):
        if step.kind == "file":
            session.write(step)
        elif step.kind == "command" and step.text in OWN_FILES:
            parse(shlex.split(step.text, comments=True)[1:])
        elif step.kind == "command":
            answer = session.quick(step.text)
            if answer is not None:
                check(page, step, answer)


@pytest.mark.slow
@by_page
def test_every_command_runs_as_printed(page, session):
    for step in steps(page):
        if step.kind == "file":
            session.write(step)
        elif step.kind == "command" and step.text not in OWN_FILES:
            check(page, step, session.shell(step.text))


@pytest.mark.parametrize("page", with_python, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page, session):
    todo = steps(page)
    blocks = [step.text for step in todo if step.kind == "python" and "run_sweep(" not in step.text]
    for step in todo:
        if step.kind == "file":
            session.write(step)
    (session.folder / "all_blocks.py").write_text("\n".join(blocks))
    code, said = session.shell("python all_blocks.py")
    assert code == 0, said


@by_page
def test_commands_for_other_places_have_valid_options(page):
    """Installing, clusters, and commands in running text: not run, but every `graphwarden` in them parses."""
    scripts = [step.text for step in steps(page) if step.kind == "elsewhere"]
    for text in [*inline_commands(page), *scripts]:
        for arguments in invocations(text):
            words = shlex.split(arguments.replace("{}", "1"), comments=True)
            assert words[0].startswith("-") or words[0] in typer.main.get_command(app).commands, arguments
            if len(words) > 1 and not words[0].startswith("-"):
                parse(words)


def test_scripts_and_tests_that_pages_name_exist():
    """Tests and benchmarks are run by their own targets, not a second time from here."""
    for page in PAGES:
        for step in steps(page):
            if step.kind == "repository":
                for path in re.findall(r"(?:tests|benchmarks|tools)/[\w/.-]+", step.text):
                    assert (ROOT / path).exists(), f"{page.name}: {step.text}"


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    named = {step.text for page in PAGES for step in steps(page) if step.kind == "make"}
    assert {"run", "test"} <= named <= targets


def test_the_pages_have_what_these_tests_look_for():
    kinds = [step.kind for page in PAGES for step in steps(page)]
    assert kinds.count("command") > 30 and kinds.count("python") > 5 and kinds.count("file") > 5
    assert any(step.output for page in PAGES for step in steps(page))


def test_the_examples_of_components_are_short():
    page = ROOT / "docs" / "add-a-component.md"
    sources = [step.text for step in steps(page) if step.kind == "file" and step.name.endswith(".py")]
    assert len(sources) == 4
    for source in sources:
        body = source[source.index("\nclass ") :]
        assert len([line for line in body.splitlines() if line.strip()]) < 20


@by_page
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


def test_generated_files_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_docs.py"), "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["scenario", "sweep"])
def test_editors_accept_every_shipped_file_and_mark_a_wrong_key(kind):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "scenarios" / f"{kind}.schema.json").read_text())
    files = [file for file in (ROOT / "scenarios").rglob("*.yaml") if f"{kind}.schema.json" in file.read_text()]
    assert len(files) > 5
    for file in files:
        data = document.read(file).data
        jsonschema.validate(data, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**data, "sede": 1}, schema)


def test_the_site_builds_and_fetches_nothing(tmp_path):
    pytest.importorskip("material")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stderr
    for page in (tmp_path / "site").glob("*.html"):
        fetched = re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"?(https?://[^\s\">]+)", page.read_text())
        assert not fetched, f"{page.name} fetches {fetched}"
