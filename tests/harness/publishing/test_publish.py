"""`draftboard publish` as a user sees it: what goes out, what does not, and what is refused."""

import io
import re
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest

TOKEN = "hf_" + "x" * 34
FILES = [
    "README.md",
    "index.html",
    "leaderboard.csv",
    "leaderboard.json",
    "leaderboard.md",
    "leaderboard.tex",
    "leaderboard.parquet",
    "data/generations.parquet",
    "runs/one/plan.json",
    "runs/one/environment.json",
    "runs/one/verdict.json",
]


@pytest.fixture(autouse=True)
def _known_token(monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: TOKEN)


@pytest.fixture
def sent(hub, cli, monkeypatch):
    """Publish to the hub of this machine; returns the files of its one commit."""
    from draftboard.publishing import upload

    def call(source, *options):
        monkeypatch.setattr(
            "draftboard.publishing.upload", lambda *a, **k: upload(*a, endpoint=hub.endpoint, token=TOKEN, **k)
        )
        told = cli("publish", source, "--hub", "me/board", *options)
        assert told.code == 0, told.err
        return hub.commits[-1]["files"], told

    return call


def rows_of(content):
    return pq.read_table(io.BytesIO(content)).to_pylist()


def front_matter(card):
    from huggingface_hub import DatasetCard

    return DatasetCard(card).data.to_dict()


def test_one_run_goes_out_whole(sent, write_run, tmp_path):
    files, told = sent(write_run(tmp_path / "one"))
    assert sorted(files) == sorted(FILES)
    assert told.out.strip().endswith("1" * 40)
    assert "made" in told.err
    assert "(private)" in told.err
    figures, answers = rows_of(files["leaderboard.parquet"]), rows_of(files["data/generations.parquet"])
    assert {row["method"] for row in figures} == {"autoregressive", "m"}
    assert [row["value"] for row in figures if row["metric"] == "speedup" and row["scope"] == "domain"]
    assert len(answers) == 40
    assert {(row["run"], row["suite"], row["status"]) for row in answers} == {("one", "s", "ok")}
    assert answers[0]["tokens"] == len(answers[0]["token_ids"]) == 12


def test_the_card_has_metadata_that_the_hub_reads(sent, write_run, tmp_path):
    files, _ = sent(write_run(tmp_path / "one"), "--title", "My {{board}}: *x*")
    card = files["README.md"].decode("utf-8")
    data = front_matter(card)
    assert data["pretty_name"] == "My {{board}}: *x*"
    assert {"speculative-decoding", "leaderboard"} <= set(data["tags"])
    assert [config["data_files"] for config in data["configs"]] == [
        "leaderboard.parquet",
        "data/generations.parquet",
    ]
    (model,) = data["model-index"]
    assert model["name"] == "tiny"
    metrics = [metric for result in model["results"] for metric in result["metrics"]]
    speed = next(metric for metric in metrics if metric["type"] == "speedup" and metric["args"]["method"] == "m")
    assert speed["value"] > 1
    assert speed["args"]["baseline"] == "autoregressive"
    assert card.split("---\n", 2)[2].lstrip().startswith("# My")


def test_the_card_tells_of_the_files_that_are_there_and_of_no_others(sent, write_run, tmp_path):
    files, _ = sent(write_run(tmp_path / "one"))
    assert "spec-bench.md" not in files
    about = files["README.md"].decode("utf-8").partition("## What is in this repository")[2]
    told = [line.partition(":")[0].strip("- `").split("`")[0] for line in about.splitlines() if line.startswith("- ")]
    assert told == ["index.html", "leaderboard.md", "leaderboard.parquet", "data/generations.parquet", "runs/"]


def test_several_runs_stand_on_one_board(sent, write_run, tmp_path):
    for name in ("one", "two"):
        write_run(tmp_path / "runs" / name)
    (tmp_path / "runs" / "notes").mkdir()
    files, _ = sent(tmp_path / "runs")
    assert {row["run"] for row in rows_of(files["data/generations.parquet"])} == {"one", "two"}
    assert {row["group"] for row in rows_of(files["leaderboard.parquet"])} == {1, 2}
    assert {"runs/one/plan.json", "runs/two/plan.json"} <= set(files)


def test_neither_paths_nor_unknown_facts_of_the_machine_go_out(sent, write_run, tmp_path, failed_cell):
    from made_runs import PAIRS

    home = "/home/someone"
    run = write_run(
        tmp_path / "one",
        cells=[*PAIRS[:3], failed_cell],
        model=f"{home}/models/tiny",
        suites=[{"name": f"jsonl@{home}/q.jsonl", "samples": 2, "content_hash": "f" * 64, "notes": [f"{home}/q: x"]}],
    )
    files, _ = sent(run, "--even-invalid")
    answers = rows_of(files["data/generations.parquet"])
    assert [row["reason"] for row in answers if row["status"] == "failed"] == ["no file x.bin"]
    packed = str(answers) + str(rows_of(files["leaderboard.parquet"]))
    for name, content in [*files.items(), ("rows", packed.encode())]:
        assert not re.search(rb"someone|do not tell|serial|HF_TOKEN", content), name
    assert b"jsonl@q.jsonl" in files["runs/one/plan.json"]


def test_a_secret_stops_the_publication(hub, cli, write_run, tmp_path):
    run = write_run(tmp_path / "one", note=TOKEN)
    told = cli("publish", run, "--hub", "me/board")
    assert told.code == 2
    assert "runs/one/plan.json: holds the Hugging Face token" in told.err
    assert TOKEN not in told.err
    assert hub.requests == []


@pytest.mark.parametrize("valid", [False, None])
def test_what_is_not_valid_is_refused_and_said_first_where_it_is_published_all_the_same(
    cli, sent, write_run, tmp_path, valid
):
    run = write_run(tmp_path / "one", valid=valid)
    told = cli("publish", run, "--hub", "me/board", "--dry-run")
    reason = "unfinished" if valid is None else "only 2 samples"
    assert told.code == 2
    assert "is not valid for claims" in told.err
    assert reason in told.err
    assert "--even-invalid" in told.err
    files, _ = sent(run, "--even-invalid")
    text = files["README.md"].decode("utf-8").split("---\n", 2)[2].lstrip()
    assert text.startswith("**Not valid for claims.** one: ")
    assert reason in text.partition("\n")[0]
    assert b"Not valid for claims" in files["leaderboard.md"]
    assert b"Not valid for claims" in files["leaderboard.tex"]


def test_a_dry_run_lists_everything_and_asks_nobody(hub, cli, write_run, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a dry run has no network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    site = tmp_path / "site"
    told = cli("publish", write_run(tmp_path / "one"), "--hub", "me/board", "--static", site, "--dry-run")
    assert told.code == 0, told.err
    listed = re.findall(r"^ +([\d,]+)  (\S+)$", told.out, re.MULTILINE)
    assert {".nojekyll", *FILES} <= {name for _, name in listed}
    assert "model-index:" in told.out
    assert not site.exists()
    assert hub.requests == []


class _Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("href", "src") and value is not None]


def test_a_site_is_ready_to_be_served(cli, write_run, tmp_path):
    run, site = write_run(tmp_path / "one"), tmp_path / "site"
    told = cli("publish", run, "--static", site)
    assert told.code == 0, told.err
    assert told.out.strip() == str(site / "index.html")
    names = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert {".nojekyll", "README.md", "index.html", "leaderboard.tex"} <= names
    assert "GitHub Pages" in (site / "README.md").read_text(encoding="utf-8")
    for page in site.rglob("*.html"):
        for link in _Links(page.read_text(encoding="utf-8")).found:
            assert not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:", link), link
            assert link.startswith("#") or (page.parent / link.partition("#")[0]).exists(), link


def test_a_site_never_goes_into_a_run(cli, write_run, tmp_path):
    run = write_run(tmp_path / "one")
    told = cli("publish", run, "--static", run)
    assert told.code == 2
    assert "is a run, not a place for a site" in told.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "nothing says where to publish"),
        (("--static", "site", "--pr"), "--pr is about a repository"),
        (("--hub", "me/board", "--pr", "--public"), "exclude each other"),
        (("--hub", "a/b/c"), "cannot be a repository"),
    ],
)
def test_options_that_do_not_fit_are_refused(cli, write_run, tmp_path, options, told):
    said = cli("publish", write_run(tmp_path / "one"), *options)
    assert said.code == 2
    assert told in said.err


@pytest.mark.parametrize("make", [None, "empty"])
def test_a_folder_without_runs_is_refused(cli, tmp_path, make):
    if make:
        (tmp_path / "x").mkdir()
    said = cli("publish", tmp_path / "x", "--static", tmp_path / "site")
    assert said.code == 2
    assert ("holds no run" if make else "there is no such folder") in said.err


def test_no_name_of_a_traced_run_goes_out_with_a_path():
    from draftboard.leaderboards.traces import TracedRun
    from draftboard.publishing.static import _published
    from draftboard.records import Cell, SampleRecord, TraceRecord

    path = "/home/someone/x"
    sample = SampleRecord(key=path, suite=path, sample_id=path, domain=path, category=path, turns=["hi"])
    run = TracedRun(
        title=path,
        methods=[path],
        samples=[sample],
        cells=[Cell(method=path, sample=path, status="failed", reason=path)],
        traces=[TraceRecord(method=path, sample=path, turns=[])],
    )
    found = _published(run)
    assert "someone" not in repr(found)
    assert found.methods == [found.cells[0].method] == [found.traces[0].method] == ["x"]


def test_a_traced_run_has_pages_of_its_answers_in_the_site_and_no_paths(run, cli, tmp_path):
    assert run("--method", "pld", "--traces", "--limit", 1).code == 0
    site = tmp_path / "site"
    told = cli("publish", tmp_path / "run", "--static", site, "--even-invalid")
    assert told.code == 0, told.err
    pages = sorted((site / "traces").glob("*.html"))
    assert len(pages) >= 2
    assert "traces/index.html" in _Links((site / "index.html").read_text(encoding="utf-8")).found
    for path in site.rglob("*"):
        assert path.is_dir() or str(tmp_path).encode() not in path.read_bytes(), path
