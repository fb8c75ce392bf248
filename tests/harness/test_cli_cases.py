"""The shared cases that speak of a rendering, through `draftboard render` and `show`, checked on what is written."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


def strict(constant):
    raise AssertionError(f"bare {constant} in JSON")


@pytest.fixture
def board(cli, tmp_path):
    """Render a case; returns (parsed leaderboard.json, folder, what was told)."""

    def render(case, out="site"):
        (path,) = DATA.glob(f"{case}*")
        told = cli("render", path, "-o", tmp_path / out)
        assert told.code == 0, told.err
        kinds = ("md", "tex", "json", "csv", "parquet")
        names = ["index.html", *(f"leaderboard.{kind}" for kind in kinds)]
        assert told.out.split() == [str(tmp_path / out / name) for name in names]
        text = (tmp_path / out / "leaderboard.json").read_text(encoding="utf-8")
        return json.loads(text, parse_constant=strict), tmp_path / out, told

    return render


def speeds(group, name="speedup"):
    return {method["method"]: method["overall"].get(name, {}).get("value") for method in group["methods"]}


def ranks(group):
    return {method["method"]: method["rank"] for method in group["methods"]}


def table(folder, group=0):
    """Cells of the first table of the n-th group of the Markdown page."""
    text = (folder / "leaderboard.md").read_text(encoding="utf-8").split("\n## ")[1 + group]
    block = next(block for block in text.split("\n\n") if block.startswith("|"))
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.strip().split("\n")]


class Texts(HTMLParser):
    """Text of each element kind, as a reader of the page sees it."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], []
        self._open = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self._open):
            self.text.append(data)


def test_case_4_the_pooled_average_leads(board):
    data, folder, _ = board("04")
    (group,) = data["groups"]
    assert ranks(group) == {"B": 1, "A": 2}
    pooled = speeds(group, "acceptance_length")
    assert pooled["A"] == pytest.approx(1.727273, abs=1e-6)
    assert pooled["B"] == pytest.approx(2.087912, abs=1e-6)
    assert speeds(group, "acceptance_length_mean_of_samples") == {"A": 2.75, "B": 2.25}
    rows = table(folder)
    assert [row[1].strip() for row in rows[2:]] == ["B", "A"]
    assert any("mean of per-sample values" in cell for cell in rows[0])


def test_show_has_the_details_only_where_they_are_asked_for(cli):
    (path,) = DATA.glob("10*")
    short, long = cli("show", path), cli("show", path, "--all")
    assert (short.code, long.code) == (0, 0)
    assert "with --all also: Speedup, by every definition" in " ".join(short.out.split())
    assert "Plain mean of domains" not in short.out
    assert "Speedup, by every definition" in long.out
    assert "with --all" not in long.out


def test_case_10_no_baseline_for_one_model(board):
    data, folder, told = board("10")
    by_model = {group["model"]: group for group in data["groups"]}
    assert speeds(by_model["model-a"]) == {"autoregressive": 1.0, "method-x": 2.0}
    assert speeds(by_model["model-a"], "tokens_per_s") == {"autoregressive": 30.0, "method-x": 60.0}
    assert speeds(by_model["model-b"]) == {"method-x": None, "method-y": None}
    assert speeds(by_model["model-b"], "tokens_per_s") == {"method-x": 30.0, "method-y": 50.0}
    reason = "no autoregressive run for model-b"
    assert all(m["overall"]["speedup"]["reason"] == reason for m in by_model["model-b"]["methods"])
    assert told.err.count(reason) == 1
    cells = {row[1].strip(): row[2].strip() for row in table(folder, 1)[2:]}
    assert set(cells) == {"method-x", "method-y"}
    assert all(cell.startswith("n/a") for cell in cells.values())


def test_case_12_ties_and_number_order(board):
    data, folder, _ = board("12")
    assert ranks(data["groups"][0]) == {"beta": 1, "gamma": 2, "omega": 3, "alpha": 4, "zeta": 4, "kappa": 6}
    rows = [(row[0].strip(), row[1].strip()) for row in table(folder)[2:]]
    assert rows == [("1", "beta"), ("2", "gamma"), ("3", "omega"), ("4", "alpha"), ("4", "zeta"), ("6", "kappa")]
    _, again, _ = board("12", "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()


def test_case_13_missing_null_and_nan(board):
    data, folder, told = board("13")
    (group,) = data["groups"]
    assert speeds(group)["full"] == pytest.approx(2.0)
    # 0.9 is the arithmetic mean of 0.9, 0.8 and 1.0; the headline is the geometric one and says so.
    assert speeds(group, "speedup_mean_of_domains")["slow"] == pytest.approx(0.9)
    assert speeds(group)["slow"] == pytest.approx(0.9 * 0.8 ** (1 / 3) / 0.9 ** (2 / 3))
    assert ranks(group) == {"full": 1, "slow": 2, "partial": None, "has-null": None, "has-nan": None}
    rows = [[cell.strip() for cell in row] for row in table(folder)[2:]]
    assert [row[1] for row in rows] == ["full", "slow", "has-nan", "has-null", "partial"]
    for row in rows[2:]:
        assert row[0] == "–"
        assert row[2].startswith("n/a")
        assert sum(cell.startswith("n/a") for cell in row[3:6]) == 1
    assert "2 of 3 domains" in told.err
    for path in (path for path in folder.iterdir() if path.suffix != ".parquet"):
        # Scripts are not data; what charts show is a block of another type and stays.
        text = re.sub(r"<script>.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\bNaN\b", text)


def test_case_14_results_from_different_machines(board):
    data, folder, _ = board("14")
    found = {group["hardware"]: group for group in data["groups"]}
    plain = {"autoregressive": 1.0}
    assert speeds(found["gpu-a"]) == pytest.approx({**plain, "eagle": 2.8, "prompt-lookup": 1.6})
    assert speeds(found["gpu-b"]) == pytest.approx({**plain, "suffix-automaton": 2.6, "prompt-lookup": 1.5})
    assert speeds(found["gpu-c"]) == {"token-recycling": None}
    assert ranks(found["gpu-a"]) == {"eagle": 1, "prompt-lookup": 2, "autoregressive": 3}
    with (folder / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        values = [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "speedup" and row["value"]]
    assert not [value for value in values if value == pytest.approx(1.4)]


def plain_page(board):
    """A page whose data holds nothing special."""
    _, folder, _ = board("12", "plain")
    return (folder / "index.html").read_text(encoding="utf-8")


def test_case_15_special_characters_in_names(board, cli):
    data, folder, _ = board("15")
    given = json.loads((DATA / "15-special-characters.json").read_text(encoding="utf-8"))
    names = [row["method"] for row in given["rows"]]
    assert set(speeds(data["groups"][0])) == set(names)
    page = Texts((folder / "index.html").read_bytes().decode("utf-8"))
    seen = re.sub(r"\s+", " ", " ".join(page.text))
    for name in (*names, given["model"]):
        assert name.replace("\n", " ") in seen
    source = (folder / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in source
    # The page's own bold is for best figures only.
    assert all(re.fullmatch(r"[\d.]+×", bold) for bold in re.findall(r"<b>(.*?)</b>", source))
    assert page.tags.count("script") == Texts(plain_page(board)).tags.count("script")
    rows = table(folder)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 2 + len(names)
    shown = cli("show", DATA / "15-special-characters.json")
    assert shown.code == 0
    for name in names:
        assert name.replace("\n", " ") in shown.out


def test_case_16_as_foreign_rows_keeps_the_last_of_a_doubled_question(board):
    data, _, told = board("16-resume-results")
    (method,) = data["groups"][0]["methods"]
    assert method["overall"]["tokens_per_s"]["value"] == pytest.approx(47.272727, abs=1e-6)
    assert method["overall"]["tokens_per_s_mean_of_samples"]["value"] == pytest.approx(50.0)
    assert told.err.count("question 2") == 1
    assert "line 5 is unfinished and was dropped" in told.err


def test_a_board_can_be_rendered_from_a_board_and_beside_a_run(cli, board, run, tmp_path):
    data, folder, _ = board("14")
    assert cli("render", folder / "leaderboard.json", "-o", tmp_path / "second").code == 0
    second = json.loads((tmp_path / "second" / "leaderboard.json").read_text(encoding="utf-8"))
    assert second["groups"] == data["groups"]
    assert run("--method", "pld", "--warmup", "none").code == 0
    told = cli(
        "render",
        tmp_path / "run",
        DATA / "04-steps-two-methods.jsonl",
        "-o",
        tmp_path / "both",
        "--title",
        "Mine & more",
    )
    assert told.code == 0
    both = json.loads((tmp_path / "both" / "leaderboard.json").read_text(encoding="utf-8"))
    assert both["title"] == "Mine & more"
    assert len(both["groups"]) == 2
    assert "Mine &amp; more" in (tmp_path / "both" / "index.html").read_text(encoding="utf-8")
