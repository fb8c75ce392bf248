"""Spec-Bench: domains and scorers, the published counts where the data is at hand, and the download."""

import http.server
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from draftboard.suites import SuiteError, limited, load_suite
from draftboard.suites import spec_bench as module
from draftboard.suites.spec_bench import DOMAINS, SHA256, download_spec_bench

from local_server import serving

Write = Callable[..., Path]


def row(number: int, category: str, **fields: object) -> dict[str, object]:
    return {"question_id": number, "category": category, "turns": ["Why?"], **fields}


def test_domain_and_scorer_of_every_category(write: Write) -> None:
    categories = [category for members in DOMAINS.values() for category in members]
    path = write(*(row(number, name, reference=["yes"]) for number, name in enumerate(categories)))
    suite = load_suite(f"spec_bench@{path}")
    assert suite.domains == tuple(DOMAINS)
    found = {sample.category: (sample.domain, sample.scorer, sample.language) for sample in suite.samples}
    assert found["math"] == found["reasoning"] == found["writing"] == ("mt_bench", None, None)
    assert found["math_reasoning"] == ("math_reasoning", "last_number", None)
    assert found["translation"] == ("translation", "bleu", "en")
    assert found["summarization"] == ("summarization", "rouge", None)
    assert found["rag"] == ("rag", "qa", None)
    assert suite.samples[0].references == (("yes",),)


def test_rows_without_references_are_unscored(write: Write) -> None:
    suite = load_suite(f"spec_bench@{write(row(1, 'qa'), row(2, 'rag', reference=['']))}")
    assert [sample.scorer for sample in suite.samples] == [None, None]


def test_an_unknown_category_is_named_with_its_line_beside_other_problems(write: Write) -> None:
    path = write(row(1, "qa"), row(2, "sumarization"), {"question_id": 3, "turns": ["a"]}, row(4, "qa", turns=[]))
    with pytest.raises(SuiteError) as caught:
        load_suite(f"spec_bench@{path}")
    assert [problem.removeprefix(f"{path}:")[:2] for problem in caught.value.problems] == ["2:", "3:", "4:"]
    assert "did you mean summarization?" in caught.value.problems[0]
    assert "no `category`" in caught.value.problems[1]


def test_other_bytes_than_the_published_are_noted(write: Write) -> None:
    (note,) = load_suite(f"spec_bench@{write(row(1, 'qa'))}").notes
    assert "question" in note
    assert "not the published Spec-Bench file" in note


def test_a_folder_is_searched_for_the_file(write: Write, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"holds no question\.jsonl"):
        load_suite(f"spec_bench@{tmp_path}")
    path = write(row(1, "qa"), name="question.jsonl")
    assert load_suite(f"spec_bench@{tmp_path}") == load_suite(f"spec_bench@{path}")
    with pytest.raises(SuiteError, match="no such file"):
        load_suite(f"spec_bench@{tmp_path}/other.jsonl")


def test_the_published_file(spec_bench_folder: Path) -> None:
    suite = load_suite(f"spec_bench@{spec_bench_folder}")
    assert suite.content_hash == SHA256
    assert suite.notes == ()
    assert suite.counts == dict.fromkeys(DOMAINS, 80)
    assert [sample.sample_id for sample in suite.samples] == [str(number) for number in range(81, 561)]
    for sample in suite.samples:
        assert len(sample.turns) == (2 if sample.domain == "mt_bench" else 1)
    per_category = Counter(sample.category for sample in suite.samples)
    assert all(per_category[category] == 10 for category in DOMAINS["mt_bench"])


def test_the_published_references(spec_bench_folder: Path) -> None:
    samples = load_suite(f"spec_bench@{spec_bench_folder}").samples
    having = Counter(sample.category for sample in samples if any(sample.references))
    assert sum(having.values()) == 359
    assert having == {
        "roleplay": 1, "extraction": 5, "stem": 4, "coding": 9, "reasoning": 10, "math": 10,
        "translation": 80, "summarization": 80, "math_reasoning": 80, "rag": 80,
    }  # fmt: skip
    assert sum(any(s.references) and not all(s.references) for s in samples) == 8
    scored = Counter((sample.domain, sample.scorer) for sample in samples)
    assert scored == {
        ("mt_bench", None): 80, ("translation", "bleu"): 80, ("summarization", "rouge"): 80,
        ("qa", None): 80, ("math_reasoning", "last_number"): 80, ("rag", "qa"): 80,
    }  # fmt: skip
    aliases = [len(sample.references[0]) for sample in samples if sample.domain == "rag"]
    assert (min(aliases), max(aliases), aliases.count(1)) == (1, 9, 43)
    words = [len(s.references[0][0].split()) for s in samples if s.domain == "summarization"]
    assert round(sum(words) / 80, 1) == 52.6


def test_a_limit_meets_every_mt_bench_category_once(spec_bench_folder: Path) -> None:
    part = limited(load_suite(f"spec_bench@{spec_bench_folder}"), 8, 0)
    assert part.counts == dict.fromkeys(DOMAINS, 8)
    assert sorted(s.category for s in part.samples if s.domain == "mt_bench") == sorted(DOMAINS["mt_bench"])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/silent":
            self.server.released.wait(30)  # type: ignore[attr-defined]
            return
        found = self.path == "/question.jsonl"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"published" if found else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Handler) as address:
        yield address


PUBLISHED = sha256(b"published").hexdigest()


def test_download_once_then_from_the_cache(server: str, tmp_path: Path) -> None:
    path = download_spec_bench(tmp_path, url=f"{server}/question.jsonl", expected_sha256=PUBLISHED)
    assert path.read_bytes() == b"published"
    assert [file.name for file in path.parent.iterdir()] == ["question.jsonl"]
    assert download_spec_bench(tmp_path, url=f"{server}/gone", expected_sha256=PUBLISHED) == path
    path.write_bytes(b"damaged")
    again = download_spec_bench(tmp_path, url=f"{server}/question.jsonl", expected_sha256=PUBLISHED)
    assert again.read_bytes() == b"published"


def test_other_bytes_are_refused_and_not_kept(server: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="other bytes than published"):
        download_spec_bench(tmp_path, url=f"{server}/question.jsonl")
    assert list(tmp_path.rglob("*.*")) == []


@pytest.mark.parametrize(("page", "reason"), [("/gone", "HTTP status 404"), ("/silent", "no answer within|timed out")])
def test_what_cannot_be_had_names_the_offline_way(server: str, tmp_path: Path, page: str, reason: str) -> None:
    with pytest.raises(SuiteError, match=reason) as caught:
        download_spec_bench(tmp_path, url=server + page, timeout_s=0.3 if page == "/silent" else 10)
    assert "spec_bench@PATH/question.jsonl" in str(caught.value)


def test_a_host_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(SuiteError, match="not reachable"):
        download_spec_bench(tmp_path, url="http://127.0.0.1:9/question.jsonl")


def test_a_cache_that_cannot_be_written(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SuiteError, match="cannot be written"):
        download_spec_bench(tmp_path / "file", url=f"{server}/question.jsonl", expected_sha256=PUBLISHED)


def test_without_a_path_the_cache_below_draftboard_cache_is_used(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(row(1, "qa"), name="question.jsonl")
    asked: list[Path] = []

    def download(cache_dir: Path) -> Path:
        asked.append(cache_dir)
        return path

    monkeypatch.setattr(module, "download_spec_bench", download)
    monkeypatch.setenv("DRAFTBOARD_CACHE", str(tmp_path / "cache"))
    assert load_suite("spec_bench").counts == {"qa": 1}
    monkeypatch.delenv("DRAFTBOARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    load_suite("spec_bench")
    assert asked == [tmp_path / "cache" / "suites", tmp_path / "xdg" / "draftboard" / "suites"]
