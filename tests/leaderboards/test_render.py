import errno
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from draftboard.errors import UserError
from draftboard.leaderboards import boards, terminal_table
from draftboard.leaderboards import render as render_board
from draftboard.metrics import METRICS, metric
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Results
from draftboard.results_file import read_results

NAMES = [
    "index.html",
    *(f"leaderboard.{kind}" for kind in ("csv", "json", "md", "parquet", "tex")),
]


def printed(group, width=200, **how):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115, PTH123
    try:
        console.print(terminal_table(group, **how))
    finally:
        console.file.close()
    return console.export_text()


def test_writes_its_files_which_are_the_same_each_time(board, tmp_path):
    first = render_board(board, tmp_path / "a" / "deep")
    second = render_board(board, tmp_path / "b")
    assert sorted(path.name for path in first) == NAMES
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == NAMES


def test_what_was_rendered_can_be_rendered_again(board, tmp_path):
    first = render_board(board, tmp_path / "a")
    second = render_board(read_results(tmp_path / "a" / "leaderboard.json"), tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_board_with_every_kind_of_table_is_read_back_too(spec_bench, tmp_path):
    first = render_board(Results(groups=(spec_bench,)), tmp_path / "a")
    second = render_board(read_results(tmp_path / "a" / "leaderboard.json"), tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_time_stamp_can_be_shown(board, tmp_path):
    paths = render_board(board, tmp_path, generated="2026-01-01 12:00 UTC")
    assert "2026-01-01 12:00 UTC" in paths[0].read_text(encoding="utf-8")


def test_a_full_disk_leaves_the_old_board_and_names_the_path(board, tmp_path, monkeypatch):
    render_board(board, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real = Path.open

    def failing(self, mode="r", *args, **kwargs):
        if "leaderboard.json" in self.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(UserError, match=r"leaderboard\.json: cannot be written: No space left on device"):
        render_board(Results(groups=()), tmp_path)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_output_path_that_is_a_file_is_refused(board, tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(UserError, match="out: cannot be written"):
        render_board(board, tmp_path / "out")


def test_importing_the_boards_needs_neither_torch_nor_a_template_engine():
    code = "import sys, draftboard.leaderboards; print({'torch', 'jinja2', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_terminal_shows_overall_figures_and_domains_as_rows(board):
    text = printed(board.groups[0])
    assert "tss[pld]" in text
    assert "1.95×" in text
    assert "autoregressive (baseline)" in text
    assert "1 of 2 domains" in text
    assert any(line.split()[:3] == ["qa", "2.00×", "1.50×"] for line in text.splitlines())


def test_terminal_keeps_markup_and_escapes_inert():
    name = "[bold red]x[/bold red] \x1b[31m :smile: [link=http://a]b[/link]"
    method = MethodResult(method=name, overall={"speedup": Figure(value=1.0)})
    text = printed(Group(model=name, hardware="", suite="", methods=(method,)))
    assert text.count("[bold red]x[/bold red] \ufffd[31m :smile: [link=http://a]b[/link]") == 2


def test_the_terminal_shows_the_main_tables_and_names_the_others(spec_bench):
    text = printed(spec_bench)
    titles = {
        level: [t.title for t in boards(spec_bench) if t.level == level] for level in ("main", "layout", "detail")
    }
    lines = [line.strip() for line in text.splitlines()]
    assert [title for title in titles["main"] if title not in lines] == []
    assert not set(titles["layout"] + titles["detail"]) & set(lines)
    told = text[text.index("with --all also: ") :].replace("\n", " ")
    assert [title for title in titles["layout"] + titles["detail"] if title not in told] == []


def test_the_terminal_shows_every_table_where_it_is_asked_to(spec_bench):
    lines = [line.strip() for line in printed(spec_bench, every=True).splitlines()]
    assert [table.title for table in boards(spec_bench) if table.title not in lines] == []
    assert not [line for line in lines if line.startswith("with --all")]


def test_the_terminal_shows_only_the_ranking_at_the_end_of_a_run(spec_bench):
    text = printed(spec_bench, headline_only=True)
    assert "Speed by domain" in text
    assert "Quality" not in text
    assert "--all" not in text


@pytest.mark.parametrize("how", [{}, {"headline_only": True}, {"every": True}])
def test_the_terminal_tells_a_lossy_methods_quality_with_its_speed(spec_bench, how):
    text = printed(spec_bench, width=80, **how)
    assert "tss[pld]: BLEU -1.5, Accuracy -0.100 (unparsed +0.100)" in text
    assert text.index("tss[pld]: BLEU") < text.index("Speed by domain")


def test_the_terminal_keeps_intervals_to_the_whole_tables(spec_bench):
    domains = {
        name: replace(
            domain,
            figures={**domain.figures, "speedup": Figure(value=2.5, n=80, interval=Interval(low=2.25, high=2.75))},
        )
        for name, domain in spec_bench.methods[1].domains.items()
    }
    methods = (spec_bench.methods[0], replace(spec_bench.methods[1], domains=domains))
    group = replace(spec_bench, methods=methods)
    assert "[2.25, 2.75]" not in printed(group)
    assert "[2.25, 2.75]" in printed(group, every=True)


@pytest.mark.parametrize("case", ["04", "10", "12", "13", "14", "15"])
def test_the_cases_render_to_strict_json(case, tmp_path):
    (path,) = (Path(__file__).parent.parent / "data").glob(f"{case}-*")
    render_board(read_results(path), tmp_path)

    def refuse(constant):
        raise AssertionError(f"bare {constant}")

    json.loads((tmp_path / "leaderboard.json").read_bytes(), parse_constant=refuse)


@pytest.mark.parametrize("width", [40, 80])
def test_no_column_is_cut_at_the_terminals_edge(width):
    """Twelve methods and every table: what does not fit stands below, and no value loses a digit."""
    names = ("mt_bench", "translation", "qa")
    methods = tuple(
        MethodResult(
            method=f"method-{index}-with-a-long-name",
            domains={
                name: DomainResult(domain=name, figures={"speedup": Figure(value=1.25 + index)}) for name in names
            },
            overall={name: Figure(value=1.25 + index, n=3) for name in METRICS if metric(name).kind == "speed"},
        )
        for index in range(12)
    )
    group = Group(model="m", hardware="h", suite="s", domains=names, methods=methods)
    text = printed(group, width=width, every=True)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "continued" in text
    assert "…" not in text
    rules = [line for line in text.splitlines() if "──" in line]
    assert all(line.endswith(" ") for line in rules)
    for index in range(12):
        assert text.count(f"{1.25 + index:.2f}×") >= 4


def test_a_value_beyond_all_measure_is_shown_as_missing():
    overall = {"speedup": Figure(value=1e300), "ttft_s": Figure(value=1.7e305), "tokens_per_s": Figure(value=1e20)}
    group = Group(model="m", hardware="h", suite="s", methods=(MethodResult(method="x", overall=overall),))
    text = printed(group)
    assert "too large to have been measured" in text
    assert "1.0e+20" in text
