import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from draftboard.leaderboards import boards
from draftboard.leaderboards.latex import latex
from draftboard.results import Figure, Group, MethodResult, Results, Verdict

from made_latex import check_latex, tabulars

ENGINE = next(filter(None, map(shutil.which, ("tectonic", "pdflatex", "xelatex", "lualatex"))), None)


@pytest.fixture
def papers(board, spec_bench):
    return Results(groups=(*board.groups, spec_bench))


def test_the_tables_of_a_paper_and_no_details(papers):
    text = latex(papers)
    check_latex(text)
    wanted = [table for group in papers.groups for table in boards(group) if table.level != "detail"]
    assert len(tabulars(text)) == len(wanted)
    assert [line for line in text.splitlines() if line.startswith(r"\label")] == [
        rf"\label{{tab:board-{number}-{table.key}}}"
        for number, group in enumerate(papers.groups, start=1)
        for table in boards(group)
        if table.level != "detail"
    ]


def test_rows_hold_ranks_bold_values_intervals_and_marks(board):
    ranking = tabulars(latex(board))[0]
    assert ranking[0].startswith("Rank & Method & Overall & Output")
    assert ranking[1].startswith(
        r"1 & tss[pld] (BLEU -1.5) & \textbf{1.95\ensuremath{\times}} [1.90, 2.00] & lossy & 2.00 &"
    )
    assert ranking[2].startswith(r"2 & a\textbar{}b*c* & 1.50")
    assert ranking[-1].startswith(r"\textendash{} & partial & n/a\tnote{1} &")
    assert r"\item[1] 1 of 2 domains" in latex(board)


def test_the_caption_says_how_it_was_measured_and_whether_it_can_be_rested_on(spec_bench):
    judged = replace(spec_bench, verdict=Verdict(valid=False, reasons=("only 5 samples",)))
    caption = re.search(r"\\caption\{(.*)\}", latex(Results(groups=(judged,))))[1]
    for part in ("vicuna-7b-v1.3", "one GPU", r"spec\_bench", "dtype float16", "decoding greedy", "n 480", r"95 \%"):
        assert part in caption
    assert caption.endswith("Not valid for claims: only 5 samples.")


def test_ties_are_told_below_the_ranking_once(spec_bench):
    first, eagle, lossy = spec_bench.methods
    tied = replace(
        spec_bench, methods=(first, replace(eagle, tied_with=(lossy.method,)), replace(lossy, tied_with=("eagle2",)))
    )
    assert latex(Results(groups=(tied,))).count("tss[pld] and eagle2 cannot be told apart.") == 1


def test_wide_tables_are_set_smaller_and_narrow_ones_are_not(board):
    narrow = Group(model="m", hardware="h", suite="s", methods=(MethodResult(method="x", overall=_speed(2.0)),))
    assert r"\begin{table}[tp]" in latex(Results(groups=(narrow,)))
    assert r"\begin{table*}[tp]" in latex(board)


def _speed(value):
    return {"speedup": Figure(value=value)}


@pytest.mark.parametrize(("name", "told"), [("方法", True), ("naïve ½", False), ("τ × 2 – x", False)])
def test_letters_that_need_another_engine_are_named_on_top(name, told):
    group = Group(model=name, hardware="h", suite="s", methods=(MethodResult(method="x", overall=_speed(2.0)),))
    text = latex(Results(groups=(group,)))
    assert ("XeLaTeX" in text.split("\n\n")[0]) is told
    assert ("U+65B9" in text.split("\n\n")[0]) is told


def test_no_groups_still_make_a_document():
    assert latex(Results(groups=())).endswith("No results.\n")


@pytest.mark.skipif(ENGINE is None, reason="no TeX engine on this machine")
def test_it_compiles(papers, tmp_path):
    finder = shutil.which("kpsewhich")
    if "tectonic" not in str(ENGINE) and finder is not None:
        for package in ("booktabs.sty", "threeparttable.sty"):
            if subprocess.run([finder, package], capture_output=True).returncode:
                pytest.skip(f"this machine's TeX lacks {package}")
    (tmp_path / "leaderboard.tex").write_text(latex(papers), encoding="utf-8")
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs,threeparttable}"
    document = rf"\documentclass{{article}}{packages}\begin{{document}}\input{{leaderboard}}\end{{document}}"
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    quiet = [] if "tectonic" in str(ENGINE) else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([str(ENGINE), *quiet, "paper.tex"], cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
