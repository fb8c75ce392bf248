import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.foreign.specdec_bench import read_specdec_bench
from draftboard.foreign.specdec_bench_export import acceptance, chunks, export_specdec_bench, rates, timing
from draftboard.records import Cell, SampleRecord

ACCEPTANCE = {
    "Request_AL": {"q1": 2.0, "q2": 3.0},
    "Category_AL": {"coding": 2.0, "writing": 3.0},
    "Average_AL": 2.5,
    "Acceptance_Length_Histogram": {"1": 4, "2": 2, "4": 2},
    "Conditional_Acceptance_Rate": {"1": 1.0, "2": 0.5, "4": 0.5},
    "Joint_Acceptance_Rate": {"1": 1.0, "2": 0.5, "4": 0.25},
}
STATISTICS = {
    "min": "0.1000",
    "max": "0.9000",
    "mean": "0.3000",
    "std": "0.1000",
    "quantiles": {"0.25": "0.2000", "0.5": "0.2500", "0.75": "0.4000"},
}
TIMING = {
    "Output TPS": 120.5,
    "Output TPS/gpu": 60.25,
    "E2E Request Time": STATISTICS,
    "TTFT Time": STATISTICS,
    "Request Generation Step Time": STATISTICS,
    "Request Generation Tokens Per Second": STATISTICS,
    "Number of Output Tokens": STATISTICS,
}
CONFIGURATION = {
    "tokenizer": "***REDACTED***",
    "engine": "VLLM",
    "engine_version": "0.11.0",
    "gpu": "NVIDIA H100",
    "model_dir": "/home/somebody/models/llama-8b",
    "draft_model_dir": "/home/somebody/eagle-head",
    "speculative_algorithm": "EAGLE3",
    "draft_length": 3,
    "concurrency": 8,
    "tp_size": 2,
    "dataset": "speed",
    "dataset_path": "/data/qualitative",
    "api_key": "sk-very-secret-0123456789",
    "argv": ["run.py", "--api_key", "sk-very-secret-0123456789"],
    "runtime_params": {"sampling_kwargs": {"temperature": 0}, "engine_args": {"hf_token": "hf_verysecret0123"}},
}


@pytest.fixture
def directory(tmp_path: Path):
    def make(name="eagle3", **files):
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / f"{file}.json").write_text(json.dumps(content, indent=4))
        return folder

    return make


def test_aggregates_under_their_own_names(directory):
    path = directory(acceptance_rate=[ACCEPTANCE], timing=[TIMING], configuration=CONFIGURATION)
    (group,) = read_specdec_bench([path]).groups
    (method,) = group.methods
    values = {name: figure.value for name, figure in method.overall.items()}
    assert values["specdec_bench_al"] == 2.5
    assert method.overall["specdec_bench_al"].n == 2
    assert values["output_tokens_per_s"] == 120.5
    assert values["ttft_s"] == 0.25
    assert values["ttft_mean_s"] == 0.3
    assert values["user_tokens_per_s"] == 0.25
    assert "acceptance_length" not in values
    assert "tokens_per_s" not in values
    assert {name: domain.figures["specdec_bench_al"].value for name, domain in method.domains.items()} == {
        "coding": 2.0,
        "writing": 3.0,
    }
    assert [figure.value for figure in method.positions["specdec_conditional"]] == [0.5, None, 0.5]
    assert [figure.value for figure in method.positions["specdec_joint"]] == [0.5, None, 0.25]
    assert (group.model, group.hardware, group.suite) == ("llama-8b", "NVIDIA H100", "speed/qualitative")
    assert group.conditions["concurrency"] == "8"
    assert method.settings["speculative_algorithm"] == "EAGLE3"
    assert method.settings["draft_model"] == "eagle-head"


def test_no_secret_and_no_home_folder_is_kept(directory):
    path = directory(acceptance_rate=[ACCEPTANCE], timing=[TIMING], configuration=CONFIGURATION)
    kept = repr(read_specdec_bench([path]))
    for text in ("secret", "REDACTED", "/home", "somebody", "argv"):
        assert text not in kept


def test_the_last_of_several_results_is_read_and_their_number_told(directory):
    older = {**ACCEPTANCE, "Average_AL": 9.0}
    path = directory(acceptance_rate=[older, older, ACCEPTANCE], timing=[TIMING])
    (group,) = read_specdec_bench([path]).groups
    assert group.methods[0].overall["specdec_bench_al"].value == 2.5
    assert group.notes == ("eagle3/acceptance_rate.json holds 3 results; the last one is read",)


def test_what_differs_in_conditions_is_another_group(directory):
    one = directory("a", acceptance_rate=[ACCEPTANCE], configuration=CONFIGURATION)
    two = directory("b", acceptance_rate=[ACCEPTANCE], configuration={**CONFIGURATION, "concurrency": 1})
    three = directory("c", acceptance_rate=[ACCEPTANCE], configuration={**CONFIGURATION, "draft_length": 5})
    groups = read_specdec_bench([one, two, three]).groups
    assert [[method.method for method in group.methods] for group in groups] == [["a", "c"], ["b"]]


def test_directories_of_one_name_are_told_apart(directory):
    paths = [directory(f"{name}/results", acceptance_rate=[ACCEPTANCE]) for name in ("eagle", "ngram")]
    (group,) = read_specdec_bench(paths).groups
    assert [method.method for method in group.methods] == ["eagle/results", "ngram/results"]


def test_half_of_the_files_is_enough(directory):
    (group,) = read_specdec_bench([directory(timing=[TIMING])], model="m", hardware="h").groups
    assert (group.model, group.hardware) == ("m", "h")
    assert "specdec_bench_al" not in group.methods[0].overall
    (group,) = read_specdec_bench([directory("b", specbench_results=ACCEPTANCE)]).groups
    assert group.methods[0].overall["specdec_bench_al"].value == 2.5


def test_failed_requests_are_counted(directory):
    path = directory(acceptance_rate=[ACCEPTANCE])
    rows = [{"question_id": 1, "error": True}, {"question_id": 2, "choices": []}]
    (path / "specbench_responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (group,) = read_specdec_bench([path]).groups
    assert group.methods[0].notes == ("1 request(s) failed",)


@pytest.mark.parametrize(
    "value",
    [None, "fast", [1], {"mean": "nan", "quantiles": None}, {"mean": None}, {"quantiles": {"0.5": "x"}}, True],
)
def test_odd_values_are_missing_and_never_zero(directory, value):
    path = directory(acceptance_rate=[{"Average_AL": value}], timing=[{"Output TPS": value, "TTFT Time": value}])
    (group,) = read_specdec_bench([path]).groups
    assert all(figure.value is None and figure.reason for figure in group.methods[0].overall.values())


def test_every_directory_without_results_is_named(directory, tmp_path: Path):
    empty, odd = directory("empty"), directory("odd", acceptance_rate=[], timing=[TIMING])
    file = tmp_path / "file.json"
    file.write_text("[]")
    with pytest.raises(UserError) as told:
        read_specdec_bench([empty, tmp_path / "no", file, odd, directory("fine", timing=[TIMING])])
    assert [problem.split(": ")[0] for problem in told.value.problems] == [
        str(empty),
        str(tmp_path / "no"),
        str(file),
        str(odd / "acceptance_rate.json"),
    ]


# Export


def sample(key, category="qa"):
    suite, _, sample_id = key.partition("/")
    return SampleRecord(key=key, suite=suite, sample_id=sample_id, domain=category, category=category, turns=["?"])


def test_the_vector_of_the_design(vector):
    assert chunks(vector) == [1, 5, 1, 3, 1]
    made = acceptance([Cell(method="m", sample="s/1", turns=[vector])], {"s/1": sample("s/1")}, {"s/1": 1})
    assert made["Average_AL"] == pytest.approx(2.2)
    assert made["Request_AL"] == {"1": pytest.approx(2.2)}
    assert made["Acceptance_Length_Histogram"] == {"1": 3, "3": 1, "5": 1}
    assert made["Conditional_Acceptance_Rate"] == {"1": 1.0, "3": 0.4, "5": 0.5}
    assert made["Joint_Acceptance_Rate"] == {"1": 1.0, "3": 0.4, "5": 0.2}


def test_a_last_chunk_of_the_end_token_alone_disappears(turn):
    assert chunks(turn([2, 0], [3, 1], finish="eos")) == [1, 3]
    assert chunks(turn([], [], finish="eos")) == []
    assert chunks(turn([2, 0], [3, 1], finish="length")) == [1, 3, 1]


def test_a_request_is_all_its_turns_and_a_category_its_requests(turn):
    cells = [
        Cell(method="m", sample="s/1", turns=[turn([3], [4]), turn([0], [1])]),
        Cell(method="m", sample="s/2", turns=[turn([1], [2])]),
    ]
    samples = {"s/1": sample("s/1", "a"), "s/2": sample("s/2", "b")}
    made = acceptance(cells, samples, {"s/1": 1, "s/2": 2})
    assert made["Request_AL"] == {"1": (1 + 4 + 1 + 1) / 4, "2": 1.5}
    assert made["Category_AL"] == {"a": 1.75, "b": 1.5}
    assert made["Average_AL"] == pytest.approx((1.75 + 1.5) / 2)


def test_times_of_the_vector(vector):
    made = timing([Cell(method="m", sample="s/1", turns=[vector])])
    assert made["Output TPS"] == pytest.approx(11 / 0.4)
    assert made["TTFT Time"]["mean"] == "0.2000"
    # The wait for the first token is the first gap.
    assert made["Request Generation Step Time"]["max"] == "0.2000"
    assert made["Request Generation Step Time"]["min"] == "0.0500"
    assert made["Request Generation Tokens Per Second"]["mean"] == f"{10 / 0.2:.4f}"
    assert made["Number of Output Tokens"]["quantiles"] == {"0.25": "11.0000", "0.5": "11.0000", "0.75": "11.0000"}


def rates_by_the_definition(lengths):
    """P(length >= k) over P(length >= the next smaller length that occurs), from the list itself."""
    found = {}
    before = None
    for length in sorted(set(lengths)):
        at_least = sum(other >= length for other in lengths) / len(lengths)
        found[str(length)] = at_least / (before or 1.0)
        before = at_least
    return found


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 5), min_size=1))
def test_rates_follow_the_definition(histogram):
    lengths = [length for length, count in histogram.items() for _ in range(count)]
    conditional, joint = rates(histogram)
    assert conditional == pytest.approx(rates_by_the_definition(lengths))
    assert joint == pytest.approx(
        {str(k): sum(other >= k for other in lengths) / len(lengths) for k in sorted(histogram)}
    )
    assert min(conditional, key=int) == str(min(lengths))
    assert conditional[str(min(lengths))] == 1.0


def test_the_round_trip_keeps_every_aggregate(stored, vector, turn, tmp_path: Path):
    cells = [
        Cell(method="autoregressive", sample="s/1", turns=[turn([0] * 5, [1] * 5)]),
        Cell(method="samd[eagle2]", sample="s/1", turns=[vector]),
        Cell(method="samd[eagle2]", sample="s/2", turns=[vector, turn([5], [6])]),
        Cell(method="samd[eagle2]", sample="s/3", status="failed", reason="boom"),
    ]
    done = export_specdec_bench(stored(cells), tmp_path / "out")
    folder = tmp_path / "out" / "samd[eagle2]"
    assert {path.name for path in folder.iterdir()} == {
        "acceptance_rate.json",
        "timing.json",
        "configuration.json",
        "specbench_responses.jsonl",
    }
    assert set(done.paths) == {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    (written,) = json.loads((folder / "acceptance_rate.json").read_text())
    (group,) = read_specdec_bench([folder]).groups
    (method,) = group.methods
    assert method.method == "samd[eagle2]"
    assert method.overall["specdec_bench_al"].value == pytest.approx(written["Average_AL"])
    assert method.settings["acceptance_length_histogram"] == written["Acceptance_Length_Histogram"]
    joint = {str(k): f.value for k, f in enumerate(method.positions["specdec_joint"], start=2) if f.value is not None}
    assert joint == {k: v for k, v in written["Joint_Acceptance_Rate"].items() if k != "1"}
    lengths = [1, 5, 1, 3, 1, 1, 5, 1, 3, 1, 1, 6]
    assert Counter({int(k): v for k, v in written["Acceptance_Length_Histogram"].items()}) == Counter(lengths)
    assert written["Conditional_Acceptance_Rate"] == pytest.approx(rates_by_the_definition(lengths))
    rows = [json.loads(line) for line in (folder / "specbench_responses.jsonl").read_text().splitlines()]
    assert rows[1] == {
        "question_id": 2,
        "category": "qa",
        "turns": ["?"],
        "choices": [{"index": 0, "turns": ["a b c", "some text"]}],
    }


def test_rounds_are_results_of_one_file(stored, turn, tmp_path: Path):
    cells = [Cell(method="m", sample="s/1", repeat=r, turns=[turn([r], [r + 1])]) for r in (1, 0)]
    export_specdec_bench(stored(cells, repeats=2), tmp_path / "out")
    found = json.loads((tmp_path / "out" / "m" / "acceptance_rate.json").read_text())
    assert [result["Average_AL"] for result in found] == [1.0, 1.5]


def test_an_imported_run_without_times_is_exported_without_them(write, answer, tmp_path: Path):
    from draftboard.foreign.spec_bench import import_spec_bench
    from draftboard.store import read_run

    import_spec_bench([write("a.jsonl", [answer(1, ("x", [2, 3], 0.5))])], tmp_path / "run")
    done = export_specdec_bench(read_run(tmp_path / "run"), tmp_path / "out")
    (found,) = json.loads((tmp_path / "out" / "m" / "timing.json").read_text())
    assert set(found) == {"Output TPS", "Output TPS/gpu", "E2E Request Time", "Number of Output Tokens"}
    assert any("does not say which answers ended" in note for note in done.notes)


def test_what_no_step_is_known_of_has_no_acceptance_file(write, answer, tmp_path: Path):
    from draftboard.foreign.spec_bench import import_spec_bench
    from draftboard.store import read_run

    row = answer(1, ("x", [2, 3], 0.5))
    del row["choices"][0]["accept_lengths"]
    import_spec_bench([write("a.jsonl", [row])], tmp_path / "run")
    export_specdec_bench(read_run(tmp_path / "run"), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "m").iterdir()}
    assert names == {"timing.json", "configuration.json", "specbench_responses.jsonl"}
