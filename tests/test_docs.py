"""What the documentation says is what the product takes."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from draftboard.cli import app
from draftboard.metrics import METRICS
from draftboard.options import read_options
from draftboard.plan import make_plan

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def _commands() -> list[str]:
    """Every draftboard command of a page, continuation lines joined, comments dropped."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        code = "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) + re.findall(r"^ {4}.*$", text, re.MULTILINE))
        for line in re.findall(r"^\s*(draftboard [a-z].*)$", code, re.MULTILINE):
            command = line.split("  #")[0]
            if "…" not in command and not re.search(r"\b[A-Z]{3,}\b", command):
                found.append(command)
    return found


@pytest.mark.parametrize("command", _commands())
def test_documented_commands_are_understood(command: str) -> None:
    app.parse_args(shlex.split(command)[1:], exit_on_error=False, print_error=False)


def test_the_readme_shows_the_plugin_example_as_it_is() -> None:
    example = (ROOT / "docs" / "plugin_example.py").read_text(encoding="utf-8")
    assert example in _blocks(ROOT / "README.md", "python")


def test_the_readme_opens_with_the_two_commands() -> None:
    first = _blocks(ROOT / "README.md", "")[0]
    assert [line.split("#")[0].strip() for line in first.strip().splitlines()] == ["make demo", "make test"]


def test_plan_tables_in_the_documentation_are_valid(tmp_path: Path) -> None:
    plans = [block for page in PAGES for block in _blocks(page, "toml")]
    assert len(plans) >= 2
    for block in plans:
        tomllib.loads(block)
        path = tmp_path / "plan.toml"
        path.write_text(block, encoding="utf-8")
        make_plan(read_options(path))


def test_every_metric_is_defined() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    text += (ROOT / "docs" / "scoring.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in text] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
