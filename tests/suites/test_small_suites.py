"""GSM8K, NTREX, SciTLDR, NQ-open and HumanEval: every form of their rows, and the published files where they are."""

import gzip
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from draftboard.suites import Sample, Suite, SuiteError, load_suite, source
from draftboard.suites import ntrex as ntrex_module
from draftboard.suites.download import Published
from draftboard.suites.wordings import WORDING_VERSION

Write = Callable[..., Path]
Folder = Callable[[str], Path]


def only(suite: Suite) -> Sample:
    (sample,) = suite.samples
    return sample


def problems_of(spec: str) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_suite(spec)
    path = spec.partition("@")[2]
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


SUM = {"question": " How much is 1 + 1?\n", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"}
CODE = {
    "task_id": "HumanEval/0",
    "prompt": 'import math\n\n\ndef one(x: int) -> int:\n    """Return {1}."""\n',
    "entry_point": "one",
    "canonical_solution": "    return 1\n",
    "test": "\ndef check(candidate):\n    assert candidate(0) == 1\n",
}
VALID: dict[str, dict[str, object]] = {
    "gsm8k": SUM,
    "ntrex_de_en": {"de": " Guten Morgen. ", "en": "Good morning."},
    "scitldr": {"title": "On {braces}", "document": "We do. It works.", "references": ["It works.", "A thing."]},
    "nq_open": {"question": "who wrote it", "answers": ["Ann", "Ann B."]},
    "humaneval": CODE,
}


@pytest.mark.parametrize(
    ("name", "domain", "scorer", "language", "budget", "sample_id"),
    [
        ("gsm8k", "gsm8k", "last_number", None, 512, "gsm8k-0"),
        ("ntrex_de_en", "ntrex_de_en", "bleu", "en", 256, "ntrex-1"),
        ("scitldr", "scitldr", "rouge", None, 96, "scitldr-0"),
        ("nq_open", "nq_open", "qa", None, 64, "nq-dev-0"),
        ("humaneval", "humaneval", "pass_at_1", None, 512, "HumanEval/0"),
    ],
)
def test_what_a_sample_says(
    write: Write, name: str, domain: str, scorer: str, language: str | None, budget: int, sample_id: str
) -> None:
    path = write(VALID[name])
    suite = load_suite(f"{name}@{path}")
    sample = only(suite)
    assert (sample.suite, sample.domain, sample.category, sample.sample_id) == (name, domain, domain, sample_id)
    assert (sample.scorer, sample.language, sample.max_new_tokens) == (scorer, language, budget)
    assert (sample.system, sample.raw, sample.stop, sample.timed) == (None, None, (), True)
    assert all(sample.references)
    assert (suite.name, suite.source, suite.wording_version) == (name, path.name, WORDING_VERSION)
    assert suite.content_hash == sha256(path.read_bytes()).hexdigest()
    assert suite.licence != "unknown"
    assert re.fullmatch(r"1 sample; the published file has [\d,]+", suite.notes[0])


def test_prompts_and_references(write: Write) -> None:
    sample = {name: only(load_suite(f"{name}@{write(row, name=f'{name}.jsonl')}")) for name, row in VALID.items()}
    turn = {name: one.turns[0] for name, one in sample.items()}
    assert turn["gsm8k"].startswith("How much is 1 + 1?\n\n")
    assert turn["gsm8k"].endswith("`#### value`, where value is the final number.")
    assert sample["gsm8k"].references == ((SUM["answer"],),)
    assert turn["ntrex_de_en"].split("\n")[1:] == ["Guten Morgen."]
    assert "German" in turn["ntrex_de_en"]
    assert sample["ntrex_de_en"].references == (("Good morning.",),)
    assert turn["scitldr"].split("\n")[1:] == ["On {braces}", "We do. It works."]
    assert sample["scitldr"].references == (("It works.", "A thing."),)
    assert turn["nq_open"].split("\n")[0] == "Who wrote it?"
    assert sample["nq_open"].references == (("Ann", "Ann B."),)
    assert turn["humaneval"].endswith(f"```python\n{CODE['prompt']}```")
    assert sample["humaneval"].context == CODE["prompt"]
    assert sample["humaneval"].references == ((f"{CODE['test']}\ncheck(one)",),)


def test_the_reference_of_a_function_checks_it(write: Write) -> None:
    sample = only(load_suite(f"humaneval@{write(CODE)}"))
    program = f"{sample.context}    return {{}}\n{sample.references[0][0]}"
    exec(program.replace("{}", "1"), {})
    with pytest.raises(AssertionError):
        exec(program.replace("{}", "2"), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("who wrote it", "Who wrote it?"), ("Who wrote it?", "Who wrote it?"), (" éric is who ", "Éric is who?")],
)
def test_questions_get_a_capital_and_a_mark(write: Write, text: str, expected: str) -> None:
    sample = only(load_suite(f"nq_open@{write({'question': text, 'answers': ['x']})}"))
    assert sample.turns[0].split("\n")[0] == expected


def test_forms_of_copies(write: Write) -> None:
    nq = only(load_suite(f"nq_open@{write({'question': 'who', 'answer': ['Ann', 'Bo']})}"))
    assert nq.references == (("Ann", "Bo"),)
    pair = only(load_suite(f"ntrex_de_en@{write({'translation': {'de': 'Ja.', 'en': 'Yes.'}})}"))
    assert pair.references == (("Yes.",),)
    published = {
        "source": ["We do.\n", " ", "It\nworks.\n"],
        "source_labels": [0, 1, 0],
        "paper_id": "Ab-1",
        "target": ["It works.", "", "A  thing."],
    }
    paper = only(load_suite(f"scitldr@{write(published)}"))
    assert paper.turns[0].split("\n")[1:] == ["We do. It works."]
    assert paper.references == (("It works.", "A thing."),)
    assert paper.sample_id == "Ab-1"
    two = load_suite(f"scitldr@{write(published, published)}")
    assert [sample.sample_id for sample in two.samples] == ["Ab-1", "Ab-1-2"]


def test_ids_of_rows_stay_those_of_the_whole_set(write: Write) -> None:
    path = write({**SUM, "id": "x-3"}, SUM, {**SUM, "id": 9})
    assert [sample.sample_id for sample in load_suite(f"gsm8k@{path}").samples] == ["x-3", "gsm8k-1", "9"]
    path = write({"de": "a", "en": "b", "line": 23, "document_id": "n.1"})
    sample = only(load_suite(f"ntrex_de_en@{path}"))
    assert (sample.sample_id, sample.meta) == ("ntrex-23", {"document_id": "n.1"})


def test_code_that_is_gzip(tmp_path: Path, write: Write) -> None:
    plain = write(CODE, name="HumanEval.jsonl")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "HumanEval.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    expected = load_suite(f"humaneval@{plain}")
    plain.unlink()
    found = load_suite(f"humaneval@{tmp_path}")
    assert (found.samples, found.content_hash) == (expected.samples, expected.content_hash)


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("gsm8k", {"question": " "}, "`question` is blank"),
        ("gsm8k", {"answer": None}, "`answer` is null"),
        ("gsm8k", {"answer": "It is two."}, "`answer` has no number"),
        ("gsm8k", {"answer": "1 + 1\n#### two"}, "`answer` holds no number after its last ####"),
        ("gsm8k", {"id": False}, "`id` is false"),
        ("ntrex_de_en", {"en": 3}, "`en` is the number 3"),
        ("ntrex_de_en", {"de": ""}, "`de` is blank"),
        ("ntrex_de_en", {"line": 0}, "`line` is 0; it must be at least 1"),
        ("ntrex_de_en", {"translation": {"de": "a"}}, "no `en`"),
        ("scitldr", {"references": []}, "`references` is empty"),
        ("scitldr", {"references": ["a", 1]}, "entry 2 of `references` is the number 1"),
        ("scitldr", {"document": ["a"]}, "`document` is a list"),
        ("scitldr", {"title": 3}, "`title` is the number 3"),
        ("scitldr", {"document": None, "source": ["a"], "target": ["", " "]}, "`target` is empty"),
        ("nq_open", {"answers": {"a": 1}}, "`answers` is an object"),
        ("nq_open", {"answers": ["a", ""]}, "entry 2 of `answers` is blank"),
        ("humaneval", {"entry_point": "one; import os"}, "which names no function"),
        ("humaneval", {"entry_point": "two"}, "`prompt` has no function two"),
        ("humaneval", {"test": "pass"}, "`test` has no function check"),
        ("humaneval", {"task_id": None}, "`task_id` is null"),
    ],
)
def test_wrong_rows_are_told_with_their_line(write: Write, name: str, fields: dict[str, object], expected: str) -> None:
    path = write({**VALID[name], "task_id": "first"}, {**VALID[name], **fields})
    (problem,) = problems_of(f"{name}@{path}")
    assert problem.startswith("2: ")
    assert expected in problem


def test_all_problems_of_a_file_are_told_at_once(write: Write) -> None:
    path = write({**SUM, "id": "a"}, "{", {**SUM, "id": "a", "answer": 3}, {**SUM, "question": None})
    assert [problem.split(":")[0] for problem in problems_of(f"gsm8k@{path}")] == ["2", "3", "3", "4"]


@pytest.mark.parametrize("name", sorted(VALID))
def test_another_kind_of_file_is_refused_by_its_columns(write: Write, name: str) -> None:
    found, expected = problems_of(f"{name}@{write({'foo': 1, 'bar': 2})}")
    assert found == "found: foo, bar"
    assert expected.startswith("expected: ")
    assert set(re.findall(r"\w+", expected)) & {"question", "de", "document", "prompt"}


@pytest.mark.parametrize("name", sorted(VALID))
def test_a_folder_without_a_file_says_what_was_tried(tmp_path: Path, name: str) -> None:
    assert all(problem.startswith("tried: ") for problem in problems_of(f"{name}@{tmp_path}"))


@pytest.mark.parametrize("name", sorted(VALID))
def test_without_a_path_the_published_file_is_fetched(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Published] = []

    def refuse(published: Published, *, suite: str, offline: str = "") -> Path:
        asked.append(published)
        raise SuiteError(f"{suite}: not reachable")

    monkeypatch.setattr(source, "download", refuse)
    monkeypatch.setattr(ntrex_module, "download", refuse)
    with pytest.raises(SuiteError, match=f"{name}: not reachable"):
        load_suite(name)
    (published,) = asked
    assert re.match(r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/", published.url)
    assert published.sha256 is None or published.sha256.startswith(published.version)


class TestTextFiles:
    """NTREX as its repository has it: two text files whose lines belong together."""

    GERMAN, ENGLISH = "newstest2019-ref.deu.txt", "newstest2019-src.eng.txt"

    def write(self, folder: Path, german: bytes, english: bytes) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.GERMAN).write_bytes(german)
        (folder / self.ENGLISH).write_bytes(english)
        return folder

    def test_a_checkout_is_read_line_by_line(self, tmp_path: Path) -> None:
        self.write(tmp_path / "NTREX-128", "Ja\u2028doch.\r\nNein.\n".encode(), b"\xef\xbb\xbfYes.\nNo.\n")
        (tmp_path / "DOCUMENT_IDS.tsv").write_text("a.1\nb.2\n")
        suite = load_suite(f"ntrex_de_en@{tmp_path}")
        assert [sample.sample_id for sample in suite.samples] == ["ntrex-1", "ntrex-2"]
        assert [sample.references for sample in suite.samples] == [(("Yes.",),), (("No.",),)]
        assert [sample.meta for sample in suite.samples] == [{"document_id": "a.1"}, {"document_id": "b.2"}]
        assert suite.samples[0].turns[0].endswith("\nJa\u2028doch.")
        assert suite.source == f"{self.GERMAN} + {self.ENGLISH}"
        either = [load_suite(f"ntrex_de_en@{tmp_path / 'NTREX-128' / name}") for name in (self.GERMAN, self.ENGLISH)]
        assert either[0].content_hash == either[1].content_hash == suite.content_hash

    def test_lines_without_a_partner(self, tmp_path: Path) -> None:
        self.write(tmp_path, b"Ja.\nNein.\n", b"Yes.\n")
        with pytest.raises(SuiteError, match=f"2 lines, but {self.ENGLISH} has 1"):
            load_suite(f"ntrex_de_en@{tmp_path}")

    def test_a_blank_line_has_its_number(self, tmp_path: Path) -> None:
        self.write(tmp_path, b"Ja.\n\nNein.\n", b"Yes.\n-\nNo.\n")
        assert problems_of(f"ntrex_de_en@{tmp_path / self.GERMAN}") == ["2: `de` is blank"]

    def test_a_missing_half(self, tmp_path: Path) -> None:
        (self.write(tmp_path, b"Ja.\n", b"Yes.\n") / self.ENGLISH).unlink()
        assert f"tried: {self.GERMAN} with {self.ENGLISH}" in problems_of(f"ntrex_de_en@{tmp_path}")
        with pytest.raises(SuiteError, match=f"{self.ENGLISH}: cannot be read"):
            load_suite(f"ntrex_de_en@{tmp_path / self.GERMAN}")


@pytest.mark.parametrize(
    ("name", "folder", "count", "first", "note"),
    [
        ("gsm8k", "gsm8k", 1319, "gsm8k-0", False),
        ("ntrex_de_en", "ntrex-de-en", 298, "ntrex-23", True),
        ("scitldr", "scitldr", 120, "HJDUjKeA-", True),
        ("nq_open", "nq-open", 300, "nq-dev-6", True),
        ("humaneval", "humaneval", 164, "HumanEval/0", False),
    ],
)
def test_the_published_data(published: Folder, name: str, folder: str, count: int, first: str, note: bool) -> None:
    suite = load_suite(f"{name}@{published(folder)}")
    assert suite.counts == {name: count}
    assert suite.samples[0].sample_id == first
    assert bool(suite.notes) == note
    assert all(sample.references[0] for sample in suite.samples)


def test_published_files_are_the_pinned_ones(published: Folder) -> None:
    from draftboard.suites import gsm8k, humaneval

    assert load_suite(f"gsm8k@{published('gsm8k')}").content_hash == gsm8k.SOURCE.published.sha256
    assert load_suite(f"humaneval@{published('humaneval')}").content_hash == humaneval.SOURCE.published.sha256


def test_counts_of_alternatives(published: Folder) -> None:
    summaries = [len(sample.references[0]) for sample in load_suite(f"scitldr@{published('scitldr')}").samples]
    assert [summaries.count(number) for number in (2, 3, 4)] == [14, 65, 41]
    answers = [len(sample.references[0]) for sample in load_suite(f"nq_open@{published('nq-open')}").samples]
    assert sum(number > 1 for number in answers) == 109


def test_published_solutions_pass_their_tests(published: Folder) -> None:
    suite = load_suite(f"humaneval@{published('humaneval')}")
    solutions = {
        row["task_id"]: row["canonical_solution"]
        for row in map(json.loads, (published("humaneval") / "HumanEval.jsonl").read_text().splitlines())
    }
    for sample in suite.samples[:10]:
        exec(f"{sample.context}{solutions[sample.sample_id]}{sample.references[0][0]}", {})


def test_the_math_prompts_of_spec_bench_are_gsm8k(published: Folder, spec_bench_folder: Path) -> None:
    problems = {s.turns[0].partition("\n\nSolve")[0] for s in load_suite(f"gsm8k@{published('gsm8k')}").samples}
    suite = load_suite(f"spec_bench@{spec_bench_folder}")
    prompts = [sample.turns[0] for sample in suite.samples if sample.domain == "math_reasoning"]
    assert len(prompts) == 80
    assert all(prompt.strip() in problems for prompt in prompts)
