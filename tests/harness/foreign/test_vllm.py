import json
from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.foreign.vllm import read_vllm
from draftboard.foreign.vllm_export import aggregates, export_vllm
from draftboard.records import Cell

RESULT = {
    "date": "20250101-000000",
    "backend": "openai-chat",
    "endpoint_type": "openai-chat",
    "label": None,
    "model_id": "/home/somebody/llama-8b",
    "tokenizer_id": "/home/somebody/llama-8b",
    "num_prompts": 80,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 4,
    "duration": 10.0,
    "completed": 78,
    "failed": 2,
    "total_input_tokens": 8000,
    "total_output_tokens": 4000,
    "request_throughput": 7.8,
    "output_throughput": 400.0,
    "total_token_throughput": 1200.0,
    "mean_ttft_ms": 50.0,
    "median_ttft_ms": 40.0,
    "std_ttft_ms": 5.0,
    "p99_ttft_ms": 90.0,
    "mean_itl_ms": 30.0,
    "median_itl_ms": 25.0,
    "mean_tpot_ms": 12.0,
    "spec_decode_acceptance_rate": 60.0,
    "spec_decode_acceptance_length": 3.25,
    "spec_decode_num_drafts": 4,
    "spec_decode_draft_tokens": 15,
    "spec_decode_accepted_tokens": 9,
    "spec_decode_per_position_acceptance_rates": [0.75, 0.75, 0.5, 0.25],
}
LEAST = {"duration": 2.0, "completed": 3, "output_throughput": 50.0}


@pytest.fixture
def file(tmp_path: Path):
    def make(*results, name="result.json", between="\n"):
        path = tmp_path / name
        path.write_text(between.join(json.dumps(result) for result in results))
        return path

    return make


def values(method):
    return {name: figure.value for name, figure in method.overall.items()}


def test_serving_figures_and_acceptance_keep_their_names(file):
    (group,) = read_vllm([file(RESULT)]).groups
    (method,) = group.methods
    found = values(method)
    assert found["output_tokens_per_s"] == 400.0
    assert found["ttft_s"] == pytest.approx(0.04)
    assert found["ttft_mean_s"] == pytest.approx(0.05)
    assert found["ttft_p99_s"] == pytest.approx(0.09)
    assert found["tpot_mean_s"] == pytest.approx(0.012)
    assert found["vllm_acceptance_length"] == 3.25
    assert found["acceptance_rate"] == pytest.approx(0.6)
    assert "acceptance_length" not in found
    assert [figure.value for figure in method.positions["vllm"]] == [0.75, 0.75, 0.5, 0.25]
    assert method.overall["output_tokens_per_s"].n == 78
    assert method.notes == ("2 request(s) failed",)
    assert (group.model, group.conditions["max concurrency"], group.conditions["request rate"]) == (
        "llama-8b",
        "4",
        "inf",
    )


def test_gaps_between_chunks_are_step_gaps(file):
    (group,) = read_vllm([file(RESULT)]).groups
    found = group.methods[0].overall
    assert found["step_gap_p50_s"].value == pytest.approx(0.025)
    assert found["step_gap_mean_s"].value == pytest.approx(0.03)
    assert "chunks" in found["step_gap_p50_s"].signature
    assert not any("itl" in name for name in found)


def test_three_numbers_are_enough(file):
    (group,) = read_vllm([file(LEAST)]).groups
    assert values(group.methods[0]) == {"output_tokens_per_s": 50.0}
    assert group.methods[0].method == "result"


def test_results_one_a_line_and_in_a_list(file, tmp_path: Path):
    many = [{**RESULT, "max_concurrency": c, "label": "eagle"} for c in (1, 4)]
    lines = read_vllm([file(*many)]).groups
    assert [group.conditions["max concurrency"] for group in lines] == ["1", "4"]
    assert [group.methods[0].method for group in lines] == ["eagle", "eagle"]
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(many, indent=2))
    assert len(read_vllm([listed]).groups) == 2
    pretty = tmp_path / "pretty.json"
    pretty.write_text("\ufeff" + json.dumps(many[0], indent=2) + "\n", encoding="utf-8")
    assert len(read_vllm([pretty]).groups) == 1


def test_a_torn_last_line_is_told(file):
    path = file(RESULT, RESULT)
    path.write_text(path.read_text()[:-30])
    (group,) = read_vllm([path]).groups
    assert len(group.methods) == 1
    assert any("line 2 is unfinished" in note for note in group.notes)


def test_equal_labels_are_numbered(file):
    (group,) = read_vllm([file(RESULT, RESULT, RESULT)]).groups
    assert [method.method for method in group.methods] == ["result", "result #2", "result #3"]


def test_every_file_of_another_kind_is_named(file):
    paths = [
        file({"rows": []}, name="a.json"),
        file({**LEAST, "duration": None}, name="b.json"),
        file([1, 2], name="c.json"),
        file({**LEAST, "completed": "many"}, name="d.json"),
        file(LEAST, name="e.json"),
    ]
    with pytest.raises(UserError) as told:
        read_vllm(paths)
    assert len(told.value.problems) == 5
    assert "b.json:1: lacks duration" in told.value.problems[1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "", "fast", [1], True])
def test_odd_numbers_are_missing_with_a_reason(file, value):
    (group,) = read_vllm([file({**LEAST, "mean_ttft_ms": value, "request_throughput": value})]).groups
    found = group.methods[0].overall
    assert found["ttft_mean_s"].value is None
    assert found["ttft_mean_s"].reason
    assert found["requests_per_s"].value is None


def test_detailed_lists_give_gaps_and_rates_of_single_requests(file):
    detailed = {
        **LEAST,
        "output_lens": [5, 3, 0],
        "ttfts": [0.1, 0.2, 0.0],
        "itls": [[0.1, 0.3], [0.2], []],
        "errors": ["", "", "timeout"],
        "generated_texts": ["a", "b", ""],
    }
    (group,) = read_vllm([file(detailed)]).groups
    found = group.methods[0].overall
    assert found["step_gap_p50_s"].value == pytest.approx(0.2)
    assert found["step_gap_max_s"].value == pytest.approx(0.3)
    assert found["user_tokens_per_s"].value == pytest.approx(10.0)
    assert found["user_tokens_per_s"].n == 2
    assert group.methods[0].notes == ("1 request(s) failed",)
    (group,) = read_vllm([file({**detailed, "output_lens": [5]})]).groups
    assert "user_tokens_per_s" not in group.methods[0].overall
    assert any("1 output_lens for 3 itls" in note for note in group.notes)


def test_aggregates_of_the_file_win_over_the_lists(file):
    (group,) = read_vllm([file({**RESULT, "itls": [[1.0, 2.0]], "output_lens": [3]})]).groups
    assert group.methods[0].overall["step_gap_p50_s"].value == pytest.approx(0.025)


def test_unknown_fields_are_kept_but_no_secret_and_no_home(file):
    extra = {"api_key": "abc", "note": "mine", "url": "http://user:pw@host", "hf": "hf_abcdefgh1234", "lora": [1]}
    (group,) = read_vllm([file({**RESULT, **extra})]).groups
    settings = group.methods[0].settings
    assert settings["note"] == "mine"
    assert settings["tokenizer_id"] == "llama-8b"
    assert not {"api_key", "url", "hf", "lora"} & set(settings)
    assert "somebody" not in repr(group)


# Export


def test_the_vector_of_the_design(stored, vector, tmp_path: Path):
    run = stored([Cell(method="eagle", sample="s/1", turns=[vector])])
    made = aggregates(run, "eagle")
    assert made["spec_decode_per_position_acceptance_rates"] == [0.75, 0.75, 0.5, 0.25]
    assert made["spec_decode_acceptance_length"] == 3.25
    assert made["spec_decode_acceptance_rate"] == pytest.approx(60.0)
    assert (made["completed"], made["total_output_tokens"], made["total_input_tokens"]) == (1, 12, 10)
    assert made["duration"] == pytest.approx(0.4)
    assert made["output_throughput"] == pytest.approx(30.0)
    assert made["mean_ttft_ms"] == pytest.approx(200.0)
    assert made["mean_tpot_ms"] == pytest.approx(200 / 11)
    assert made["median_itl_ms"] == pytest.approx(50.0)
    assert made["max_concurrency"] == 1
    (path,) = export_vllm(run, tmp_path / "out").paths
    (group,) = read_vllm([path]).groups
    assert group.methods[0].method == "eagle"
    found = values(group.methods[0])
    assert found["vllm_acceptance_length"] == 3.25
    assert found["output_tokens_per_s"] == pytest.approx(30.0)
    assert found["step_gap_p50_s"] == pytest.approx(0.05)


def test_what_was_not_recorded_has_no_key(write, answer, stored, turn, tmp_path: Path):
    from draftboard.foreign.spec_bench import import_spec_bench
    from draftboard.store import read_run

    import_spec_bench([write("a.jsonl", [answer(1, ("x", [2, 3], 0.5))])], tmp_path / "run")
    made = aggregates(read_run(tmp_path / "run"), "m")
    assert made["output_throughput"] == pytest.approx(10.0)
    assert not {"mean_ttft_ms", "mean_itl_ms", "total_input_tokens", "spec_decode_num_drafts"} & set(made)
    plain = aggregates(stored([Cell(method="m", sample="s/1", turns=[turn([0], [1])])]), "m")
    assert "spec_decode_num_drafts" not in plain


def test_failed_cells_are_counted(stored, turn, tmp_path: Path):
    cells = [
        Cell(method="m", sample="s/1", turns=[turn([1], [2])]),
        Cell(method="m", sample="s/2", status="failed", reason="boom"),
        Cell(method="dead", sample="s/1", status="failed", reason="boom"),
    ]
    done = export_vllm(stored(cells), tmp_path / "out")
    assert [path.name for path in done.paths] == ["m.json"]
    assert json.loads(done.paths[0].read_text())["failed"] == 1
    assert any(note.startswith("dead: no cell") for note in done.notes)


def test_a_file_without_a_result_is_refused(file):
    path = file(LEAST)
    path.write_text("[]")
    with pytest.raises(UserError, match="holds no result"):
        read_vllm([path])


@pytest.mark.parametrize("completed", [-1, 1e30])
def test_a_count_that_cannot_be_is_no_count(file, completed):
    (group,) = read_vllm([file({**LEAST, "completed": completed})]).groups
    assert group.methods[0].overall["output_tokens_per_s"].n is None


def test_gaps_beyond_all_measure_do_not_stop_the_reader(file):
    detailed = {**LEAST, "itls": [[1e308, 1e308], [0.5]], "output_lens": [3, 2]}
    (group,) = read_vllm([file(detailed)]).groups
    assert group.methods[0].overall["user_tokens_per_s"].value == pytest.approx(2.0)


@pytest.mark.parametrize("path", ["/home/somebody/data.json", "~/data.json", "C:\\Users\\somebody\\data.json"])
def test_no_folder_of_somebody_is_kept(file, path):
    (group,) = read_vllm([file({**LEAST, "dataset": path, "note": "a/b at 5"})]).groups
    assert group.methods[0].settings["dataset"] == "data.json"
    assert group.methods[0].settings["note"] == "a/b at 5"
