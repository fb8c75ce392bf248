"""The bundled suite: complete, scored where it says so, and true to its own answers."""

import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from draftboard.suites import Sample, Suite, load_suite

SPEC = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")
SPEED = (
    "coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem",
    "summarization", "writing",
)  # fmt: skip
DOMAINS = (*(f"spec_bench/{name}" for name in SPEC), *(f"speed_bench/{name}" for name in SPEED))


@pytest.fixture(scope="module")
def mini() -> Suite:
    return load_suite("mini")


def of(mini: Suite, *names: str) -> list[Sample]:
    found = [sample for sample in mini.samples if sample.domain.rpartition("/")[2] in names]
    assert found
    return found


def test_seventeen_domains_with_at_least_four_samples(mini: Suite) -> None:
    assert mini.domains == DOMAINS
    assert min(mini.counts.values()) >= 4
    assert (mini.name, mini.licence, mini.source, mini.notes) == ("mini", "Apache-2.0", "mini.jsonl", ())
    data = files("draftboard.suites").joinpath("data", "mini.jsonl").read_bytes()
    assert mini.content_hash == sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("name", "scorer"),
    [
        ("translation", "bleu"),
        ("summarization", "rouge"),
        ("qa", "qa"),
        ("rag", "qa"),
        ("math_reasoning", "last_number"),
        ("math", "last_number"),
    ],
)
def test_scored_domains_are_scored_throughout(mini: Suite, name: str, scorer: str) -> None:
    assert {sample.scorer for sample in of(mini, name)} == {scorer}


def test_a_scored_sample_has_references_and_no_other_has(mini: Suite) -> None:
    for sample in mini.samples:
        assert all(sample.references) == (sample.scorer is not None), sample.sample_id
        assert any(sample.references) == (sample.scorer is not None), sample.sample_id


def test_number_references_are_worked_solutions(mini: Suite) -> None:
    for sample in mini.samples:
        if sample.scorer == "last_number":
            assert re.fullmatch(r"[^#]+\n#### -?\d+", sample.references[0][0]), sample.sample_id


def test_every_equation_in_a_worked_solution_holds(mini: Suite) -> None:
    checked = 0
    for sample in mini.samples:
        if sample.scorer == "last_number":
            for left, right in re.findall(r"(\d[\d +*/-]*\d) = (\d+)", sample.references[0][0]):
                assert eval(left) == int(right), (sample.sample_id, left)
                checked += 1
    assert checked >= 12


def test_rag_answers_stand_in_the_passages(mini: Suite) -> None:
    for sample in of(mini, "rag"):
        passages = sample.turns[0].rpartition("Question:")[0]
        assert any(alias in passages for alias in sample.references[0]), sample.sample_id


def test_letter_questions_show_their_options(mini: Suite) -> None:
    letters = [sample for sample in mini.samples if sample.scorer == "letter"]
    assert {sample.domain for sample in letters} >= {"speed_bench/stem", "speed_bench/humanities"}
    for sample in letters:
        assert len(sample.options) == 4
        for letter, option in zip("ABCD", sample.options, strict=True):
            assert f"\n{letter}. {option}\n" in sample.turns[0]


def test_conversations_have_two_turns(mini: Suite) -> None:
    conversations = of(mini, "mt_bench", "roleplay", "writing")
    assert {len(sample.turns) for sample in conversations} == {2}
    assert len({sample.category for sample in of(mini, "mt_bench")}) >= 4
    assert sum(len(sample.turns) == 2 for sample in mini.samples) == len(conversations)


def test_languages(mini: Suite) -> None:
    assert {sample.language for sample in of(mini, "translation")} == {"en"}
    multilingual = of(mini, "multilingual")
    assert {sample.language for sample in multilingual} == {"de", "es", "zh", "fr", "ja", "it"}
    assert {sample.scorer for sample in multilingual} == {"bleu", None}
    others = [s for s in mini.samples if s.domain.rpartition("/")[2] not in ("translation", "multilingual")]
    assert {sample.language for sample in others} == {None}


def test_long_contexts_only_in_rag_and_summarization(mini: Suite) -> None:
    long = {s.domain for s in mini.samples if sum(len(turn.split()) for turn in s.turns) >= 700}
    assert long == {f"{mirror}/{name}" for mirror in ("spec_bench", "speed_bench") for name in ("rag", "summarization")}
    short = [s for s in mini.samples if sum(len(turn.split()) for turn in s.turns) < 150]
    assert len(short) == len(mini.samples) - 4


def test_no_text_occurs_twice(mini: Suite) -> None:
    turns = [turn for sample in mini.samples for turn in sample.turns]
    assert len(set(turns)) == len(turns)


def test_no_prompt_is_one_of_spec_bench(mini: Suite, spec_bench_folder: Path) -> None:
    published = {
        " ".join(turn.lower().split())
        for sample in load_suite(f"spec_bench@{spec_bench_folder}").samples
        for turn in sample.turns
    }
    assert not published & {" ".join(turn.lower().split()) for s in mini.samples for turn in s.turns}


def test_the_page_states_the_counts(mini: Suite) -> None:
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text(encoding="utf-8")
    section = page.partition("## mini")[2].partition("\n## ")[0]
    stated: dict[str, int] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for mirror, place in (("spec_bench", 0), ("speed_bench", 3)):
            if len(cells) == 6 and cells[place].startswith("`") and not cells[place].endswith("/`"):
                stated[f"{mirror}/{cells[place].strip('`')}"] = int(re.split(r"\D", cells[place + 1])[0])
    assert stated == mini.counts
