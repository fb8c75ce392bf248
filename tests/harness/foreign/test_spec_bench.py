import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftboard.analysis import analyse
from draftboard.errors import UserError
from draftboard.foreign.spec_bench import META, import_spec_bench
from draftboard.foreign.spec_bench_export import entries, export_spec_bench
from draftboard.records import Cell
from draftboard.store import read_run
from draftboard.suites import SuiteError


def pair(write, answer, *, n=3):
    plain = [answer(q, ("w " * q, [1] * q, 0.1 * q), model="vanilla") for q in range(1, n + 1)]
    fast = [answer(q, ("w " * q, [q], 0.05 * q), model="fast") for q in range(1, n + 1)]
    return write("vanilla.jsonl", plain), write("fast.jsonl", fast)


def test_an_imported_run_is_read_like_ours(write, answer, tmp_path: Path):
    made = import_spec_bench(pair(write, answer), tmp_path / "run", hardware="A100", model="vicuna")
    run = read_run(tmp_path / "run")
    assert made.baseline == "vanilla"
    assert run.warnings == ()
    assert [sample.key for sample in run.samples] == ["spec_bench/1", "spec_bench/2", "spec_bench/3"]
    cell = next(cell for cell in run.cells if cell.method == "fast" and cell.sample == "spec_bench/2")
    (turn,) = cell.turns
    assert (turn.n_tokens, turn.end_ns, turn.prefill_emits) == (2, 100_000_000, 0)
    assert (turn.first_ns, turn.prefill_ns, turn.cpu_ns, turn.text_tokens) == (None, None, None, None)
    assert turn.steps == {"accepted": [1], "kept": [2]}
    group = analyse(run)
    assert (group.model, group.hardware, group.baseline, group.suite) == ("vicuna", "A100", "vanilla", "spec_bench")
    fast = next(method for method in group.methods if method.method == "fast")
    assert fast.overall["speedup"].value == pytest.approx(2.0)
    assert fast.overall["acceptance_length"].value == pytest.approx(2.0)
    assert fast.overall["acceptance_rate"].value is None
    assert fast.overall["ttft_s"].value is None
    assert fast.overall["speedup_decode"].value is None
    assert fast.output == "text-equal"
    assert fast.lossless is None


def test_nothing_is_claimed_that_the_files_do_not_say(write, answer, tmp_path: Path):
    import_spec_bench(pair(write, answer), tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.plan["imported"]["format"] == "spec-bench"
    assert [file["name"] for file in run.plan["imported"]["files"]] == ["vanilla.jsonl", "fast.jsonl"]
    assert all(len(file["sha256"]) == 64 for file in run.plan["imported"]["files"])
    assert str(tmp_path) not in (tmp_path / "run" / "plan.json").read_text()
    conditions = analyse(run).conditions
    assert not {"decoding", "batch size", "seed", "max new tokens", "dtype", "device"} & set(conditions)
    rows = [json.loads(line) for line in (tmp_path / "run" / META).read_text().splitlines()]
    assert rows[0]["meta"] == {"answer_id": "a1", "tstamp": 1.7e9}


def test_the_baseline_is_named_or_plain_and_never_guessed_by_name(write, answer, tmp_path: Path):
    files = pair(write, answer)
    assert import_spec_bench(files, tmp_path / "a", baseline="fast").baseline == "fast"
    assert import_spec_bench(files[1:], tmp_path / "b").baseline == ""
    assert analyse(read_run(tmp_path / "b")).methods[0].overall["speedup"].value is None
    with pytest.raises(UserError, match="there are: vanilla, fast"):
        import_spec_bench(files, tmp_path / "c", baseline="autoregressive")
    other = write("other.jsonl", [answer(1, ("a", [1], 0.1), model="other")])
    with pytest.raises(UserError, match="vanilla, other"):
        import_spec_bench([files[0], other], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_turns_after_differing_answers_are_not_paired(write, answer, tmp_path: Path):
    def rows(model, first, entry):
        return [
            answer(81, (first, [entry] * 4, 1.0), ("second", [entry] * 4, 1.0), model=model, category="writing"),
            answer(82, ("same", [entry] * 4, 1.0), ("second", [entry] * 4, 1.0), model=model, category="writing"),
        ]

    files = write("a.jsonl", rows("plain", "one", 1)), write("b.jsonl", rows("fast", "other", 2))
    import_spec_bench(files, tmp_path / "run")
    (_, fast) = analyse(read_run(tmp_path / "run")).methods
    assert fast.diverged_turns == 1
    assert fast.output == "text-different"


def test_failed_rows_doubled_rows_and_unmatched_questions_are_told(write, answer, tmp_path: Path):
    plain = [answer(q, ("t", [1, 1], 0.2), model="plain") for q in (1, 2, 3)]
    fast = [answer(q, (text, [2], 0.1), model="fast") for q, text in ((1, "t"), (2, "ERROR"), (1, "t"), (4, "t"))]
    path = write("fast.jsonl", fast)
    path.write_bytes(path.read_bytes() + b'{"question_id": 5, "ca')
    made = import_spec_bench([write("plain.jsonl", plain), path], tmp_path / "run")
    told = "\n".join(made.notes)
    assert "fast: 1 doubled" in told
    assert "fast lacks 1 question(s) that plain answers: 3" in told
    assert "fast answers 1 question(s) that plain lacks: 4" in told
    assert "line 5 is unfinished" in told
    run = read_run(tmp_path / "run")
    assert run.plan["imported"]["notes"] == list(made.notes)
    assert set(made.notes) <= set(analyse(run).notes)
    failed = next(cell for cell in run.cells if cell.method == "fast" and cell.sample == "spec_bench/2")
    assert (failed.status, failed.turns) == ("failed", [])
    (_, method) = analyse(run).methods
    assert method.domains["qa"].failed == 1
    assert method.overall["speedup"].value is None


def test_domains_are_those_of_spec_bench_and_other_categories_stay(write, answer, tmp_path: Path):
    categories = {1: "math", 2: "math_reasoning", 3: "rag", 4: "chess", 5: None}
    rows = [answer(q, ("t", [1], 0.1), category=category) for q, category in categories.items()]
    import_spec_bench([write("a.jsonl", rows)], tmp_path / "run")
    found = {sample.sample_id: sample.domain for sample in read_run(tmp_path / "run").samples}
    assert found == {"1": "mt_bench", "2": "math_reasoning", "3": "rag", "4": "chess", "5": "uncategorised"}


def test_choices_are_rounds(write, answer, tmp_path: Path):
    row = answer(1, ("a", [1, 1], 0.2), model="plain")
    row["choices"] += [answer(1, ("b", [1, 1, 1], 0.3))["choices"][0]]
    made = import_spec_bench([write("a.jsonl", [row, answer(2, ("a", [1], 0.2), model="plain")])], tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.plan["repeats"] == 2
    assert [(cell.sample, cell.repeat) for cell in run.cells] == [
        ("spec_bench/1", 0),
        ("spec_bench/1", 1),
        ("spec_bench/2", 0),
    ]
    assert any("1 question(s) have fewer than the 2 answers" in note for note in made.notes)


def test_texts_are_tokenised_again_where_a_tokenizer_is_given(write, answer, tmp_path: Path):
    import_spec_bench(
        pair(write, answer), tmp_path / "run", count_tokens=lambda text: len(text.split()) + 1, tokenizer="words"
    )
    run = read_run(tmp_path / "run")
    assert [cell.turns[0].text_tokens for cell in run.cells if cell.method == "vanilla"] == [2, 3, 4]
    assert run.plan["tokenizer"] == "words"
    (_, fast) = analyse(run).methods
    assert fast.overall["speedup_specbench"].value == pytest.approx(2.0)


QUESTIONS = [
    {"question_id": 161, "category": "translation", "turns": ["Translate: Hallo"], "reference": ["Hello there"]},
    {"question_id": 401, "category": "math_reasoning", "turns": ["1+1?"], "reference": ["It is 2 #### 2"]},
    {"question_id": 81, "category": "writing", "turns": ["Write.", "More."]},
]


def test_a_question_file_brings_prompts_references_and_scorers(write, answer, tmp_path: Path):
    from draftboard.evaluation import score_run

    rows = [
        answer(161, ("Hello there", [1], 0.1), category="translation"),
        answer(401, ("The answer is 3", [1], 0.1), category="math_reasoning"),
        answer(81, ("one", [1], 0.1), ("two", [1], 0.1), category="writing"),
        answer(999, ("?", [1], 0.1), category="qa"),
    ]
    made = import_spec_bench([write("a.jsonl", rows)], tmp_path / "run", questions=write("question.jsonl", QUESTIONS))
    assert any("1 question(s) are not in question.jsonl: 999" in note for note in made.notes)
    run = read_run(tmp_path / "run")
    samples = {sample.sample_id: sample for sample in run.samples}
    assert samples["161"].turns == ["Translate: Hallo"]
    assert samples["161"].references == [["Hello there"]]
    assert (samples["161"].scorer, samples["401"].scorer, samples["81"].scorer) == ("bleu", "last_number", None)
    scores = {record.domain: record.scores.values for record in score_run(run)}
    assert scores["math_reasoning"]["accuracy"].value == 0.0


def test_a_question_file_of_other_questions_is_refused(write, answer, tmp_path: Path):
    answers = write("a.jsonl", [answer(7, ("x", [1], 0.1))])
    with pytest.raises(UserError, match="none of the 1 questions"):
        import_spec_bench([answers], tmp_path / "run", questions=write("question.jsonl", QUESTIONS))
    with pytest.raises(SuiteError):
        import_spec_bench([answers], tmp_path / "run", questions=tmp_path / "no.jsonl")
    assert not (tmp_path / "run").exists()


def test_a_different_number_of_turns_is_told(write, answer, tmp_path: Path):
    made = import_spec_bench(
        [write("a.jsonl", [answer(81, ("one", [1], 0.1), category="writing")])],
        tmp_path / "run",
        questions=write("question.jsonl", QUESTIONS),
    )
    assert "question 81: 1 answer(s) to 2 turn(s)" in made.notes


def test_an_existing_folder_is_never_overwritten(write, answer, tmp_path: Path):
    files = pair(write, answer)
    import_spec_bench(files, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UserError, match="holds a run already"):
        import_spec_bench(files, tmp_path / "run")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        import_spec_bench(files, tmp_path / "full")
    with pytest.raises(UserError, match="a file, not a folder"):
        import_spec_bench(files, tmp_path / "full" / "note.txt")
    (tmp_path / "empty").mkdir()
    import_spec_bench(files, tmp_path / "empty")
    assert read_run(tmp_path / "empty").cells


def test_what_goes_wrong_at_the_end_leaves_nothing(write, answer, tmp_path: Path):
    def fail(folder: Path) -> None:
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        import_spec_bench(pair(write, answer), tmp_path / "out" / "run", finish=fail)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(write, answer, tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot be written"):
        import_spec_bench(pair(write, answer), locked / "run")


# Export


def test_the_vector_of_the_design(stored, vector, tmp_path: Path):
    assert entries(vector) == [1, 5, 1, 3, 2]
    run = stored([Cell(method="eagle", sample="spec_bench/81", turns=[vector])])
    (path,) = export_spec_bench(run, tmp_path / "out").paths
    (row,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.name == "eagle.jsonl"
    assert (row["question_id"], row["category"], row["model_id"]) == (81, "qa", "eagle")
    choice = row["choices"][0]
    assert choice["accept_lengths"] == [1, 5, 1, 3, 2]
    assert choice["decoding_steps"] == [5]
    assert choice["new_tokens"] == [12]
    assert choice["wall_time"] == [0.4]
    assert choice["turns"] == ["a b c"]
    assert isinstance(row["tstamp"], float)
    assert isinstance(row["answer_id"], str)


def test_rows_are_ascending_and_failed_cells_are_left_out(stored, turn, tmp_path: Path):
    cells = [Cell(method="a/b c", sample=f"spec_bench/{number}", turns=[turn([0], [1])]) for number in (100, 9, 81)]
    cells.append(Cell(method="a/b c", sample="spec_bench/82", status="failed", reason="boom"))
    cells.append(Cell(method="none", sample="spec_bench/9", status="failed", reason="boom"))
    done = export_spec_bench(stored(cells), tmp_path / "out")
    assert [path.name for path in done.paths] == ["a_b c.jsonl"]
    rows = [json.loads(line) for line in done.paths[0].read_text().splitlines()]
    assert [row["question_id"] for row in rows] == [9, 81, 100]
    assert any("1 cell(s) that failed" in note for note in done.notes)
    assert any(note.startswith("none: no cell") for note in done.notes)
    (again,) = export_spec_bench(stored(cells), tmp_path / "again").paths
    assert done.paths[0].read_bytes() == again.read_bytes()


def test_plain_decoding_is_all_ones_and_steps_that_kept_nothing_are_dropped(stored, turn, tmp_path: Path):
    plain, other = turn([0, 0, 0], [1, 1, 1]), turn([2, 1], [3, 0])
    run = stored(
        [
            Cell(method="autoregressive", sample="s/1", turns=[plain, plain]),
            Cell(method="x", sample="s/1", turns=[other]),
        ]
    )
    paths = {path.stem: path for path in export_spec_bench(run, tmp_path / "out").paths}
    choice = json.loads(paths["autoregressive"].read_text())["choices"][0]
    assert choice["accept_lengths"] == [1] * 8
    assert choice["decoding_steps"] == [4, 4]
    assert json.loads(paths["x"].read_text())["choices"][0]["accept_lengths"] == [1, 3]


@pytest.mark.parametrize(
    ("samples", "ids"),
    [
        (["s/a", "s/1"], ["1", "a"]),
        (["s/01"], ["01"]),
        (["s/1", "t/1"], ["s/1", "t/1"]),
        (["s/" + "9" * 5000], ["9" * 5000]),
    ],
)
def test_other_ids_are_text_and_told(stored, turn, tmp_path: Path, samples, ids):
    run = stored([Cell(method="m", sample=sample, turns=[turn([0], [1])]) for sample in samples])
    done = export_spec_bench(run, tmp_path / "out")
    assert [json.loads(line)["question_id"] for line in done.paths[0].read_text().splitlines()] == ids
    assert any("ids are text" in note for note in done.notes)


def test_samples_that_measure_no_decoding_are_left_out(stored, turn, tmp_path: Path):
    cells = [Cell(method="m", sample=sample, turns=[turn([0], [1])]) for sample in ("s/1", "s/2")]
    done = export_spec_bench(stored(cells, samples={"s/1": {"timed": False}, "s/2": {}}), tmp_path / "out")
    assert [json.loads(line)["question_id"] for line in done.paths[0].read_text().splitlines()] == [2]


def test_a_run_without_a_good_cell_is_refused(stored, tmp_path: Path):
    run = stored([Cell(method="m", sample="s/1", status="failed", reason="boom")])
    with pytest.raises(UserError, match="no cell"):
        export_spec_bench(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_text_survives(stored, turn, tmp_path: Path):
    text = 'a\u2028b\n"\\ \u0000 émoji 😀 مرحبا'
    run = stored([Cell(method="m", sample="s/1", turns=[turn([0], [1], text=text)])])
    (path,) = export_spec_bench(run, tmp_path / "out").paths
    assert path.read_bytes().isascii()
    import_spec_bench([path], tmp_path / "back")
    assert read_run(tmp_path / "back").cells[0].turns[0].text == text


STEPS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)).map(lambda pair: (pair[0], pair[0] + 1 - min(pair))))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 1), STEPS), min_size=1, max_size=2), min_size=1, max_size=4),
    st.floats(0.001, 1e4),
)
def test_export_and_import_keep_tokens_times_and_steps(stored, turn, tmp_path_factory, samples, seconds):
    folder = tmp_path_factory.mktemp("round")
    cells = []
    for number, turns in enumerate(samples):
        made = [
            turn([a for a, _ in steps], [k for _, k in steps], end=seconds, emits=emits)
            for emits, steps in turns
            if emits or any(k for _, k in steps)
        ]
        if made:
            cells.append(Cell(method="m", sample=f"s/{number}", turns=made))
    if not cells:
        return
    (path,) = export_spec_bench(stored(cells, name=f"run-{folder.name}"), folder / "out").paths
    import_spec_bench([path], folder / "back")
    back = {cell.sample.partition("/")[2]: cell for cell in read_run(folder / "back").cells}
    for cell in cells:
        for ours, theirs in zip(cell.turns, back[cell.sample.partition("/")[2]].turns, strict=True):
            assert theirs.n_tokens == ours.n_tokens
            assert theirs.end_ns == ours.end_ns
            assert theirs.prefill_emits == ours.prefill_emits
            assert theirs.steps.get("kept", []) == [k for k in ours.steps["kept"] if k]


def test_the_acceptance_length_survives_the_round_trip(stored, vector, turn, tmp_path: Path):
    cells = [
        Cell(method="autoregressive", sample="s/1", turns=[turn([0] * 11, [1] * 11)]),
        Cell(method="eagle", sample="s/1", turns=[vector]),
    ]
    ours = analyse(stored(cells))
    import_spec_bench(export_spec_bench(stored(cells, name="b"), tmp_path / "out").paths, tmp_path / "back")
    theirs = analyse(read_run(tmp_path / "back"))
    assert theirs.baseline == "autoregressive"
    for before, after in zip(ours.methods, theirs.methods, strict=True):
        assert before.method == after.method
        for name in ("acceptance_length", "tokens_per_s", "speedup", "spec_bench_mean_accepted"):
            assert after.overall[name].value == pytest.approx(before.overall[name].value)
    assert theirs.methods[1].overall["acceptance_length"].value == pytest.approx(2.75)


def test_a_failed_round_leaves_the_others_in_their_places(stored, turn, tmp_path: Path):
    """Otherwise the second round of one method would be held against the first of the other."""

    def made(method, repeat, seconds, status="ok"):
        turns = [turn([0], [1], end=seconds)] if status == "ok" else []
        return Cell(method=method, sample="s/1", repeat=repeat, status=status, turns=turns)

    other = [Cell(method="autoregressive", sample="s/2", repeat=r, turns=[turn([0], [1], end=1.0)]) for r in (0, 1)]
    run = stored(
        [
            made("autoregressive", 0, 0.0, "failed"),
            made("autoregressive", 1, 4.0),
            *other,
            made("m", 0, 100.0),
            made("m", 1, 2.0),
        ],
        repeats=2,
    )
    paths = export_spec_bench(run, tmp_path / "out").paths
    import_spec_bench(paths, tmp_path / "back", baseline="autoregressive")
    back = read_run(tmp_path / "back")
    assert next((c.repeat, c.turns[0].end_ns) for c in back.cells if c.method == "autoregressive") == (1, 4_000_000_000)
    assert back.plan["repeats"] == 2


@pytest.mark.parametrize("indices", [("x", None), (3, 3), (-1, 0), (True, False), (7, 8)])
def test_numbers_of_choices_that_are_no_rounds_are_not_used(write, answer, tmp_path: Path, indices):
    row = answer(1, ("a", [1, 1], 0.2))
    row["choices"] = [{**row["choices"][0], "index": index} for index in indices]
    import_spec_bench([write("a.jsonl", [row])], tmp_path / "run")
    assert [cell.repeat for cell in read_run(tmp_path / "run").cells] == [0, 1]


def test_a_row_without_time_is_in_no_figure_of_speed(write, answer, tmp_path: Path):
    plain, fast = pair(write, answer, n=2)
    rows = [json.loads(line) for line in fast.read_text().splitlines()]
    rows[0]["choices"][0]["wall_time"] = [0]
    import_spec_bench([plain, write("fast.jsonl", rows)], tmp_path / "run")
    fast = next(method for method in analyse(read_run(tmp_path / "run")).methods if method.method == "fast")
    assert fast.overall["tokens_per_s"].value == pytest.approx(20)
    assert (fast.overall["speedup_time"].value, fast.overall["speedup_time"].n) == (pytest.approx(2.0), 1)
    assert fast.overall["acceptance_length"].n == 2
    assert "1 of 2 turns took no time and are in no figure of speed" in fast.notes


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes on POSIX alone")
def test_a_file_whose_name_is_no_utf8(answer, tmp_path: Path):
    row = answer(1, ("a", [1, 1], 0.2), model=None)
    path = Path(os.fsdecode(os.fsencode(tmp_path / "m") + b"\xff.jsonl"))
    path.write_text(json.dumps(row))
    made = import_spec_bench([path], tmp_path / "run", hardware="h\udcff")
    run = read_run(tmp_path / "run")
    assert [method.label for method in made.methods] == ["m\ufffd"]
    assert run.plan["imported"]["files"][0]["name"] == "m\ufffd.jsonl"
    assert run.environment["hardware"] == "h\ufffd"
