"""SPEED-Bench files as its prepare programs write them. All texts are made up."""

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from draftboard.suites import Suite, SuiteError, SuiteSettings, load_suite, speed_bench
from draftboard.suites.hub import HubPlace
from draftboard.suites.request import Request
from draftboard.suites.rows import RowFile, parse_rows
from draftboard.suites.speed_bench import DOMAINS, PLACEHOLDER, TIERS, VARIANTS

MADE_UP = Path(__file__).parents[1] / "data" / "speed_bench"


def made_up() -> list[dict[str, Any]]:
    lines = (MADE_UP / "qualitative.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def row(number: int, category: object = "qa", **fields: object) -> dict[str, Any]:
    return {"question_id": f"q{number}", "category": category, "turns": ["Why?"], **fields}


def throughput_rows() -> list[dict[str, Any]]:
    return [row(number, TIERS[number % 3], multiturn=False) for number in range(1536)]


def in_nemo_skills_form(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**{key: value for key, value in one.items() if key != "turns"}, "messages": user_messages(one["turns"])}
        for one in rows
    ]


def user_messages(turns: list[str]) -> list[dict[str, str]]:
    return [{"role": "user", "content": turn} for turn in turns]


def write_parquet(path: Path, rows: list[dict[str, Any]], metadata: Mapping[str, str] | None = None) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows), encoding="utf-8")
    return path


def problems(path: Path, variant: str = "") -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        load_suite(f"speed_bench{variant}@{path}")
    return tuple(problem.removeprefix(f"{path}:") for problem in caught.value.problems)


def conversations(suite: Suite) -> dict[str, tuple[str, ...]]:
    return {sample.sample_id: sample.turns for sample in suite.samples}


def test_the_made_up_file_has_every_column_of_t2d_in_its_order() -> None:
    suite = load_suite(f"speed_bench@{MADE_UP / 'qualitative.jsonl'}")
    assert suite.name == "speed_bench"
    assert suite.domains == DOMAINS
    assert len(DOMAINS) == 11
    assert all(2 <= number <= 3 for number in suite.counts.values())
    rows = made_up()
    assert conversations(suite) == {one["question_id"]: tuple(one["turns"]) for one in rows}
    assert any(len(sample.turns) > 1 for sample in suite.samples)
    assert suite.content_hash == sha256((MADE_UP / "qualitative.jsonl").read_bytes()).hexdigest()
    assert "NVIDIA Evaluation Dataset License" in suite.licence
    for sample in suite.samples:
        assert (sample.suite, sample.domain) == ("speed_bench", sample.category)
        assert (sample.language, sample.scorer, sample.system, sample.references) == (None, None, None, ())
        assert sample.timed
        assert sample.max_new_tokens is None
    stored = next(one for one in rows if one["category"] == "stem")
    sample = next(sample for sample in suite.samples if sample.sample_id == stored["question_id"])
    assert sample.meta == {key: stored[key] for key in ("sub_category", "source", "src_id", "difficulty", "multiturn")}


def test_samples_of_one_domain_keep_the_order_of_the_file() -> None:
    suite = load_suite(f"speed_bench@{MADE_UP}")
    for domain in DOMAINS:
        expected = [one["question_id"] for one in made_up() if one["category"] == domain]
        assert [sample.sample_id for sample in suite.samples if sample.domain == domain] == expected


def test_both_prepare_programs_give_the_same_conversations(tmp_path: Path) -> None:
    lines = load_suite(f"speed_bench@{MADE_UP}")
    parquet = load_suite(f"speed_bench@{write_parquet(tmp_path / 'qualitative' / 'test.parquet', made_up())}")
    messages = load_suite(
        f"speed_bench@{write_lines(tmp_path / 'nemo' / 'qualitative.jsonl', in_nemo_skills_form(made_up()))}"
    )
    assert conversations(lines) == conversations(parquet) == conversations(messages)
    assert [dict(sample.meta) for sample in parquet.samples] == [dict(sample.meta) for sample in lines.samples]
    assert "specdec_bench's prepare_data.py" in parquet.notes[0]
    assert "NeMo-Skills' prepare.py" in messages.notes[0]
    assert parquet.content_hash != lines.content_hash


def test_metadata_that_another_library_left_in_parquet_plays_no_part(tmp_path: Path) -> None:
    foreign = {"huggingface": json.dumps({"info": {"features": {"turns": {"_type": "TypeOfTomorrow"}}}})}
    path = write_parquet(tmp_path / "qualitative.parquet", made_up(), foreign)
    assert load_suite(f"speed_bench@{path}").counts == load_suite(f"speed_bench@{MADE_UP}").counts


def test_turns_may_be_a_list_written_as_json(write: Callable[..., Path]) -> None:
    path = write(row(1, turns=json.dumps(["Why?", "Why \u2028 not?"])), row(2, turns='["\\u00fc"]'))
    assert conversations(load_suite(f"speed_bench@{path}")) == {"q1": ("Why?", "Why \u2028 not?"), "q2": ("ü",)}


def test_messages_keep_a_leading_system_text_and_drop_answers(write: Callable[..., Path]) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *user_messages(["Why?"])]
    messages += [{"role": "assistant", "content": "So."}, *user_messages(["And now?"])]
    path = write({"question_id": 7, "category": "qa", "messages": messages})
    suite = load_suite(f"speed_bench@{path}")
    (sample,) = suite.samples
    assert (sample.sample_id, sample.system, sample.turns) == ("7", "Be brief.", ("Why?", "And now?"))
    assert "1 assistant messages are not used: each method gives its own answers" in suite.notes


def test_counts_other_than_published_are_noted(tmp_path: Path) -> None:
    suite = load_suite(f"speed_bench@{MADE_UP}")
    assert "24 prompts, where the published configuration has 880: coding 2, " in suite.notes[1]
    whole = [row(number, DOMAINS[number % 11]) for number in range(880)]
    assert len(load_suite(f"speed_bench@{write_lines(tmp_path / 'a.jsonl', whole)}").notes) == 1
    short = [one for one in whole if one["question_id"] not in ("q5", "q16")]
    notes = load_suite(f"speed_bench@{write_lines(tmp_path / 'b.jsonl', short)}").notes
    assert notes[1].startswith("878 prompts, where the published configuration has 880: rag 78 instead of 80 each")


def test_a_throughput_configuration_has_three_tiers(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "speed" / "throughput_8k" / "test.parquet", throughput_rows())
    suite = load_suite(f"speed_bench/throughput_8k@{tmp_path}")
    assert suite.name == "speed_bench/throughput_8k"
    assert suite.counts == dict.fromkeys(("low_entropy", "mixed", "high_entropy"), 512)
    assert len(suite.notes) == 1
    assert all(sample.suite == suite.name for sample in suite.samples)
    assert load_suite(f"speed_bench@{path}").name == suite.name


def test_a_folder_is_searched_in_a_fixed_order(tmp_path: Path) -> None:
    places = (
        "qualitative/test.parquet",
        "speed/qualitative/test.parquet",
        "qualitative.parquet",
        "qualitative.jsonl",
        "test.parquet",
    )
    for number, place in enumerate(places):
        write = write_parquet if place.endswith("parquet") else write_lines
        write(tmp_path / place, [row(number)])
    for number, place in enumerate(places):
        assert [sample.sample_id for sample in load_suite(f"speed_bench@{tmp_path}").samples] == [f"q{number}"]
        (tmp_path / place).unlink()
    assert problems(tmp_path) == tuple(f"tried: {place}" for place in places)
    assert problems(tmp_path, "/throughput_2k")[1] == "tried: speed/throughput_2k/test.parquet"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("throughput_1k.jsonl", "throughput_1k"),
        ("throughput_16k/test.jsonl", "throughput_16k"),
        ("SPEED-Bench_throughput-32k.v2.jsonl", "throughput_32k"),
        ("throughput_1k/throughput_2k.jsonl", "throughput_2k"),
        ("notes.jsonl", "qualitative"),
        ("throughput_1k_and_throughput_2k.jsonl", "qualitative"),
        ("throughput_1k_and_throughput_2k/throughput.jsonl", "qualitative"),
        ("throughput_128k.jsonl", "qualitative"),
    ],
)
def test_a_variant_follows_from_an_unambiguous_name_only(place: str, expected: str, tmp_path: Path) -> None:
    category = "qa" if expected == "qualitative" else "mixed"
    path = write_lines(tmp_path / place, [row(1, category)])
    suite = load_suite(f"speed_bench@{path}")
    assert suite.name == ("speed_bench" if expected == "qualitative" else f"speed_bench/{expected}")
    assert suite.notes[-1].startswith("1 prompts, where the published configuration has")


def test_the_name_of_a_folder_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "speed" / "throughput_1k"
    write_parquet(folder / "test.parquet", [row(1, "mixed")])
    assert load_suite(f"speed_bench@{folder}").name == "speed_bench/throughput_1k"
    monkeypatch.chdir(folder)
    assert load_suite("speed_bench@.").name == "speed_bench/throughput_1k"


def test_another_variant_than_the_name_says_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "throughput_1k.jsonl", [row(1, "mixed")])
    with pytest.raises(SuiteError, match="named after throughput_1k, but throughput_8k was asked for"):
        load_suite(f"speed_bench/throughput_8k@{path}")
    assert load_suite(f"speed_bench/throughput_1k@{path}").domains == ("mixed",)


def test_rows_of_the_other_kind_are_refused_once(write: Callable[..., Path]) -> None:
    tiers = write(row(1, "mixed"), row(2, "low_entropy"), name="tiers.jsonl")
    with pytest.raises(SuiteError, match=r"another configuration than qualitative \(low_entropy, mixed\)") as caught:
        load_suite(f"speed_bench@{tiers}")
    assert "Use speed_bench/throughput_1k (or another length)@PATH" in str(caught.value)
    domains = write(row(1, "qa"), name="domains.jsonl")
    with pytest.raises(SuiteError, match="another configuration than throughput_1k"):
        load_suite(f"speed_bench/throughput_1k@{domains}")


def test_placeholder_rows_are_refused_with_the_first_ids_and_the_command(write: Callable[..., Path]) -> None:
    masked = [row(number, turns=[f"{PLACEHOLDER}\n\nSummarize: {{article}}"]) for number in range(1, 10)]
    path = write(row(0), *masked)
    found = problems(path)
    assert found == (
        *(f"{number + 1}: a placeholder instead of the prompt in question q{number}" for number in range(1, 5)),
        "6: a placeholder instead of the prompt in question q5 (and in 4 more)",
    )
    with pytest.raises(SuiteError) as caught:
        load_suite(f"speed_bench@{path}")
    assert "python3 prepare_data.py --dataset speed --config qualitative`" in str(caught.value)
    assert "python3 prepare.py --config qualitative --output_dir DIR`" in str(caught.value)
    with pytest.raises(SuiteError, match="--config throughput_2k"):
        load_suite(f"speed_bench/throughput_2k@{write(row(1, 'mixed', turns=[PLACEHOLDER]))}")


def test_a_placeholder_is_found_in_any_turn_and_form(write: Callable[..., Path], tmp_path: Path) -> None:
    expected = ("1: a placeholder instead of the prompt in question q1",)
    assert problems(write(row(1, turns=["Why?", PLACEHOLDER]))) == expected
    assert problems(write(row(1, turns=json.dumps(["Why?", f" {PLACEHOLDER}"])))) == expected
    assert problems(write(*in_nemo_skills_form([row(1, turns=["Why?", PLACEHOLDER])]))) == expected
    parquet = write_parquet(tmp_path / "x.parquet", [row(1, turns=[PLACEHOLDER])])
    assert problems(parquet) == ("row 1: a placeholder instead of the prompt in question q1",)
    # A prompt that only speaks of it is none.
    assert load_suite(f"speed_bench@{write(row(1, turns=[f'What does {PLACEHOLDER} mean?']))}")


def test_several_rows_on_one_line_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "one-line.json"
    path.write_text(json.dumps([row(0), row(1, turns=[PLACEHOLDER]), row(2, turns=[PLACEHOLDER])]))
    assert problems(path) == tuple(f"1: a placeholder instead of the prompt in question q{number}" for number in (1, 2))


@pytest.mark.parametrize(
    ("source", "turn", "unfilled"),
    [
        ("abisee/cnn_dailymail", "Summarize:\n{article}", "article"),
        ("livecodebench/code_generation_lite", "{question}\n\n{starter_code}", "question"),
        ("https://huggingface.co/datasets/ZenMoore/RoleBench/tree/a/b", "You are {role_name}.", "role_name"),
        ("Neph0s/CoSER", "You are {character} from {book_name}.", "character"),
        (None, "Context:{context}", "context"),
        ("made-up", "({question})", "question"),
        # The template of another source, code and mathematics.
        ("abisee/cnn_dailymail", "He said {question}.", None),
        ("tianyang/repobench_python_v1.1", 'print(f"{question} {context}")', None),
        ("AdaLEval/stackselect", "{{question}} {subject}", None),
        (None, r"\text{question} \frac{subject}{context} ${article} {{article}} {article }", None),
    ],
)
def test_unfilled_fields_of_known_templates(
    source: str | None, turn: str, unfilled: str | None, write: Callable[..., Path]
) -> None:
    path = write(row(1, source=source, turns=["Hello.", turn]))
    if unfilled is None:
        assert load_suite(f"speed_bench@{path}").samples[0].turns[1] == turn
    else:
        assert problems(path) == (f"1: the unfilled field {{{unfilled}}} in question q1",)


def test_code_of_an_unknown_source_may_hold_braces(write: Callable[..., Path]) -> None:
    code = 'print(f"{question}")'
    assert load_suite(f"speed_bench@{write(row(1, 'coding', turns=[code]))}").samples[0].turns == (code,)


def test_all_problems_of_a_file_are_told_at_once(write: Callable[..., Path]) -> None:
    path = write(
        row(1),
        row(1, turns=["Again."]),
        "{broken",
        row(2, turns=[]),
        row(3, turns=["Why?", " "]),
        row(4, turns=["Why?", 5]),
        row(5, turns="Why?"),
        row(6, turns='["\\ud800"]'),
        row(7, "maths"),
        row(8, None),
        row(9, 3),
        {"question_id": None, "category": "qa", "turns": ["Why?"]},
        {"question_id": True, "category": "qa", "turns": ["Why?"]},
        {"question_id": "q12", "category": "qa"},
        row(13, source=["a"], multiturn={}),
        row(14, turns=[PLACEHOLDER]),
        row(15, turns=["{article}"]),
        row(16, messages=user_messages(["Why?"])),
        {"question_id": "q17", "category": "qa", "messages": [{"role": "user", "content": ""}]},
    )
    listed = "coding, humanities, math, multilingual, qa, rag, reasoning, roleplay, stem, summarization, writing"
    first, of_text, *others = problems(path)
    assert of_text.startswith("3: not valid JSON")
    assert (first, *others) == (
        "2: question_id q1 is already used on line 1",
        "4: `turns` is empty",
        "5: turn 2 is blank",
        "6: turn 2 is the number 5; it must be a string",
        "7: `turns` is a string, but no JSON list of strings",
        "8: `turns` is a string, but no JSON list of strings",
        f"9: unknown category 'maths'; did you mean math? (known: {listed})",
        "10: no `category`",
        "11: `category` is the number 3; it must be a string",
        "12: `question_id` is null; it must be an integer or a string",
        "13: `question_id` is true; it must be an integer or a string",
        "14: no `turns` (nor `prompt` nor `messages`)",
        "15: `source` is a list; it must be a string",
        "15: `multiturn` is an object; it must be a string",
        "16: a placeholder instead of the prompt in question q14",
        "17: the unfilled field {article} in question q15",
        "18: `turns` and `messages` are given; only one of them may be",
        "19: message 1 (user) is blank",
    )


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_another_schema_is_refused_by_its_columns(ending: str, tmp_path: Path) -> None:
    write = write_parquet if ending == "parquet" else write_lines
    path = write(tmp_path / f"other.{ending}", [{"prompt": "Why?", "answer": "So."}])
    with pytest.raises(SuiteError, match="not the columns expected") as caught:
        load_suite(f"speed_bench@{path}")
    assert caught.value.problems == (
        "found: prompt, answer",
        "expected: question_id, category, turns or question_id, category, messages",
    )


def test_columns_of_another_type_are_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "typed.parquet", [{"question_id": 1.5, "category": "qa", "turns": [1, 2]}])
    assert problems(path) == (
        "row 1: `question_id` is the number 1.5; it must be an integer or a string",
        "row 1: turn 1 is the number 1; it must be a string",
        "row 1: turn 2 is the number 2; it must be a string",
    )


@pytest.mark.parametrize("name", ["none.parquet", "empty.jsonl", "torn.parquet"])
def test_unreadable_files_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SuiteError, match=re.escape(name)):
        load_suite(f"speed_bench@{tmp_path / name}")


def test_a_path_is_needed_and_the_variants_are_listed() -> None:
    with pytest.raises(SuiteError, match="speed_bench needs a file"):
        load_suite("speed_bench")
    with pytest.raises(SuiteError, match="did you mean throughput_1k"):
        load_suite(f"speed_bench/throughput1k@{MADE_UP}")
    for variant in VARIANTS[1:]:
        with pytest.raises(SuiteError, match=variant):
            speed_bench.load(Request(name="speed_bench", variant=variant, path=str(MADE_UP), settings=SuiteSettings()))


def test_a_data_set_of_the_hub_is_read_by_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[HubPlace] = []

    def rows(place: HubPlace, *, suite: str, offline: str) -> RowFile:
        asked.append(place)
        assert "prepare_data.py" in offline
        return parse_rows(json.dumps(row(1, "mixed")).encode(), "data")

    monkeypatch.setattr(speed_bench, "hub_rows", rows)
    assert load_suite("speed_bench/throughput_2k@hf://me/prepared").name == "speed_bench/throughput_2k"
    assert load_suite("speed_bench@hf://me/prepared/throughput_8k@v1").name == "speed_bench/throughput_8k"
    assert asked == [
        HubPlace(name="me/prepared", usual_config="throughput_2k"),
        HubPlace(name="me/prepared", config="throughput_8k", usual_config="throughput_8k", revision="v1"),
    ]
