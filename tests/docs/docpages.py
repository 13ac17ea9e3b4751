"""What a documentation page asks its reader to do, as steps in order: files to write, commands, Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELLS = ("console", "bash", "sh", "shell")
PROGRAMS = ("graphwarden", "make", "python", "pip", "cut", "grep", "head", "cat", "mkdir")
ELSEWHERE = ("source", "pip", "git", "sbatch", "parallel")
"""Programs that install something or need a cluster; the `graphwarden` inside them is still checked."""

FENCE = re.compile(r"^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)


@dataclass
class Step:
    """One thing to do. `kind`: file | command | make | repository | elsewhere | python."""

    kind: str
    text: str
    name: str = ""  # of a file
    expected: int = 0  # exit code of a command
    output: list[str] = field(default_factory=list)  # what it must print, if the page marks it as exact


def steps(page: Path) -> list[Step]:
    """All steps of a page."""
    text = page.read_text(encoding="utf-8")
    found: list[Step] = []
    for fence in FENCE.finditer(text):
        language, body = fence["language"], fence["body"]
        mark = text[: fence.start()].rstrip().rpartition("\n")[2]
        title = re.search(r'title="([^"]+)"', fence["info"])
        if title:
            found.append(Step("file", body, name=title[1]))
        elif language == "python" and not mark.startswith("<!-- not run"):
            found.append(Step("python", body))
        elif language in SHELLS or (not language and re.search(r"^(\$ )?graphwarden ", body, re.M)):
            found += commands(body, strict=language in SHELLS)
        elif mark == "<!-- exact -->":
            assert found and found[-1].kind == "command", f"{page.name}: an exact output without a command before it"
            found[-1].output = body.splitlines()
    return found


def commands(body: str, strict: bool) -> list[Step]:
    """The commands of a shell block. A block that is not `strict` may hold output between them."""
    if body.startswith("#!"):
        return [Step("elsewhere", body)]
    prompted = any(line.startswith("$ ") for line in body.splitlines())
    found = []
    for statement in statements(body):
        if prompted and not statement.startswith("$ "):
            continue
        statement = statement.removeprefix("$ ")
        bare = re.sub(r"^(\w+=\S+ )+", "", statement)
        program = bare.split()[0]
        if not strict and program not in PROGRAMS:
            continue
        if program == "make":
            found.append(Step("make", bare.split()[1]))
        elif re.search(r"\b(tests|benchmarks|tools)/\w", statement):
            found.append(Step("repository", statement))
        elif program in ELSEWHERE or bare != statement or "$" in statement:
            found.append(Step("elsewhere", statement))
        else:
            code = re.search(r"# leaves with (\d+)", statement)
            found.append(Step("command", statement, expected=int(code[1]) if code else 0))
    return found


def statements(body: str) -> list[str]:
    """Lines of a shell block, joined where a backslash or a here-document goes on; comments and blanks left out."""
    found: list[str] = []
    lines = iter(body.splitlines())
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.endswith("\\"):
            line = line[:-1] + next(lines).lstrip()
        document = re.search(r"<<'?(\w+)'?", line)
        if document:
            parts = [line]
            for part in lines:
                parts.append(part)
                if part == document[1]:
                    break
            line = "\n".join(parts)
        found.append(line)
    return found


def inline_commands(page: Path) -> list[str]:
    """`graphwarden ...` in running text, without those that hold a placeholder such as FILE."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    spans = (" ".join(span.split()) for span in re.findall(r"`(graphwarden [^`]+)`", prose))
    return [span for span in spans if not re.search(r"\b[A-Z]{1,}\b|\.\.\.|…", span)]


def invocations(text: str) -> list[str]:
    """The arguments of every `graphwarden` inside a script."""
    return [found.strip() for found in re.findall(r"\bgraphwarden ([^'|;&\n]+)", text)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        kept = "".join(c for c in plain.lower() if c.isalnum() or c in " -_")
        found.add(kept.strip().replace(" ", "-"))
    return found


def links(page: Path) -> list[str]:
    """Targets of links and images to files of the repository."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    prose = re.sub(r"`[^`\n]*`", "", prose)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target]
