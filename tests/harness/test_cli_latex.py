"""The shared cases that speak of a table, through `draftboard render`, read from what it writes for LaTeX."""

import pytest

from made_latex import check_latex, tabulars
from made_rows import case


@pytest.fixture
def tables(cli, tmp_path):
    """Render a case; returns the tables of leaderboard.tex and the whole text."""

    def render(number):
        told = cli("render", case(number), "-o", tmp_path)
        assert told.code == 0, told.err
        text = (tmp_path / "leaderboard.tex").read_text(encoding="utf-8")
        check_latex(text)
        return [[row.split(" & ") for row in table] for table in tabulars(text)], text

    return render


def test_case_12_ties_share_a_rank_and_stand_in_name_order(tables):
    (ranking,), text = tables(12)
    assert [(row[0], row[1]) for row in ranking[1:]] == [
        ("1", "beta"),
        ("2", "gamma"),
        ("3", "omega"),
        ("4", "alpha"),
        ("4", "zeta"),
        ("6", "kappa"),
    ]
    assert text.count(r"\textbf{") == 1
    assert tables(12)[1] == text


def test_case_13_missing_values_are_named_and_unranked(tables):
    (ranking, *_), text = tables(13)
    assert [(row[0], row[1]) for row in ranking[1:3]] == [("1", "full"), ("2", "slow")]
    assert {row[1] for row in ranking[3:]} == {"partial", "has-null", "has-nan"}
    for row in ranking[3:]:
        assert row[0] == r"\textendash{}"
        assert sum(cell.startswith("n/a") for cell in row) >= 2
    assert "nan" not in text.replace("has-nan", "").lower()


def test_case_14_each_machine_has_its_own_table(tables):
    found, text = tables(14)
    for machine in ("gpu-a", "gpu-b", "gpu-c"):
        assert f"hardware {machine}" in text
    values = {row[1].partition(" ")[0]: row[2] for row in found[0][1:]}
    assert values["eagle"] == r"\textbf{2.80\ensuremath{\times}}"
    assert "1.40" not in text
    assert any(row[0] == "eagle" for row in found[-1])  # τ across machines, where nothing is ranked


def test_case_15_names_read_as_in_the_input(tables):
    (ranking,), text = tables(15)
    assert [row[1] for row in ranking[1:]] == [
        r"SpS \textbar{} 68m",
        r"\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{}",
        r"A \& B *fast* \textasciigrave{}k=4\textasciigrave{}",
        "two lines",
        "SP²ec \\textendash{} Ünïcode 方法",
    ]
    assert r"model \textless{}b\textgreater{}a\textless{}/b\textgreater{} \textbar{} v1" in text
    assert "XeLaTeX" in text
