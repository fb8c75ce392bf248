"""Every acceptance figure: the worked trace, the shared cases, identities, and what imported turns cannot tell."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import acceptance_figures, positions
from draftboard.measures.acceptance import CUT_UNKNOWN, PREFILL_UNKNOWN

DATA = Path(__file__).parents[2] / "data"

STEP = st.integers(0, 6).flatmap(
    lambda drafted: st.integers(0, drafted).map(lambda accepted: (drafted, accepted, accepted + 1))
)


def values(turns):
    return {name: figure.value for name, figure in acceptance_figures(turns).items()}


def test_the_worked_trace_under_all_its_names(vector, of):
    assert values(of(vector)) == pytest.approx(
        {
            "acceptance_length": 2.75,
            "acceptance_length_raw": 3.25,
            "acceptance_length_mean_of_samples": 2.75,
            "accepted_per_step": 2.0,
            "accepted_per_step_raw": 2.25,
            "block_efficiency": 2.75,
            "tokens_per_target_pass": 2.4,
            "spec_bench_mean_accepted": 2.4,
            "specdec_bench_al": 2.2,
            "vllm_acceptance_length": 3.25,
            "acceptance_rate": 8 / 15,
            "acceptance_rate_raw": 0.6,
            "acceptance_rate_nodes": 8 / 15,
            "acceptance_rate_mean_of_samples": 8 / 15,
            "nodes_per_step": 15 / 4,
        }
    )
    assert all(figure.n == 1 and not figure.signature for figure in acceptance_figures(of(vector)).values())


@pytest.mark.parametrize(
    ("case", "length", "rate", "passes"),
    [
        ("03-trace-chain.json", 17 / 6, 11 / 18, 18 / 7),
        ("05-trace-eos-in-block.json", 3.0, 5 / 7, 7 / 3),
        ("06-trace-over-limit.json", 4.5, 1.0, 10 / 3),
    ],
)
def test_traces_of_the_shared_cases(replay, of, case, length, rate, passes):
    found = values(of(replay(case)))
    assert found["acceptance_length"] == pytest.approx(length)
    assert found["acceptance_rate"] == pytest.approx(rate)
    assert found["tokens_per_target_pass"] == pytest.approx(passes)


def test_pooled_and_mean_of_samples_may_order_methods_differently(imported, of):
    found = {}
    for line in (DATA / "04-steps-two-methods.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["method"], []).extend(of(imported(row["tokens_per_step"]), sample=str(row["question_id"])))
    a, b = acceptance_figures(found["A"]), acceptance_figures(found["B"])
    assert a["acceptance_length"].value == pytest.approx(190 / 110)
    assert b["acceptance_length"].value == pytest.approx(190 / 91)
    assert a["acceptance_length_mean_of_samples"].value == pytest.approx(2.75)
    assert b["acceptance_length_mean_of_samples"].value == pytest.approx(2.25)
    assert a["acceptance_length_mean_of_samples"].n == 2


def test_autoregressive_decoding_is_one_and_has_no_rate(turn, of):
    figures = acceptance_figures(of(turn(5, steps=((0, 0, 1),) * 4)))
    for name in (
        "acceptance_length",
        "acceptance_length_raw",
        "block_efficiency",
        "tokens_per_target_pass",
        "spec_bench_mean_accepted",
        "specdec_bench_al",
    ):
        assert figures[name].value == 1.0, name
    for name in ("acceptance_rate", "acceptance_rate_raw", "acceptance_rate_nodes", "vllm_acceptance_length"):
        assert figures[name].value is None
        assert figures[name].reason == "nothing was drafted"
    assert figures["nodes_per_step"].value == 0.0


def test_an_answer_of_one_token_has_no_step(turn, of):
    figures = acceptance_figures(of(turn(1, finish="eos")))
    assert figures["acceptance_length"].reason == "no step after the prefill"
    assert figures["tokens_per_target_pass"].value == 1.0
    assert figures["spec_bench_mean_accepted"].value == 1.0
    # Its only chunk was the end token.
    assert figures["specdec_bench_al"].reason == "no chunk besides end tokens"


def test_vllm_leaves_out_steps_that_did_not_draft(turn, of):
    found = values(of(turn(6, steps=((0, 0, 1), (2, 2, 3), (0, 0, 1)))))
    assert found["vllm_acceptance_length"] == pytest.approx(3.0)
    assert found["acceptance_length"] == pytest.approx(5 / 3)
    assert found["acceptance_length_raw"] == pytest.approx(5 / 3)


def test_trees_are_counted_by_path_and_by_node(turn, of):
    found = values(of(turn(5, steps=((2, 1, 2), (3, 1, 2)), nodes=(8, 12))))
    assert found["acceptance_rate"] == pytest.approx(2 / 5)
    assert found["acceptance_rate_nodes"] == pytest.approx(2 / 20)
    assert found["nodes_per_step"] == 10.0


def test_a_step_that_a_stop_text_emptied_is_no_entry(turn, of):
    found = values(of(turn(4, steps=((3, 2, 3), (3, 3, 0)), finish="stop")))
    assert found["spec_bench_mean_accepted"] == pytest.approx(4 / 2)
    assert found["specdec_bench_al"] == pytest.approx(4 / 2)
    assert found["acceptance_length"] == pytest.approx(3 / 2)


def test_a_prefill_that_emits_nothing_adds_no_entry(turn, of):
    found = values(of(turn(5, steps=((2, 1, 2), (2, 2, 3)), emits=0)))
    assert found["block_efficiency"] == pytest.approx(5 / 2)
    assert found["tokens_per_target_pass"] == pytest.approx(5 / 3)
    assert found["spec_bench_mean_accepted"] == pytest.approx(5 / 2)


def test_requests_weigh_equally_with_all_their_turns(turn, of):
    # Chunks [1, 3] and [1] of one request, [1, 1, 1] of the other, an end token removed nowhere.
    turns = of(turn(4, steps=((2, 2, 3),)), turn(1), sample="1") + of(turn(3, steps=((1, 0, 1),) * 2), sample="2")
    figure = acceptance_figures(turns)["specdec_bench_al"]
    assert figure.value == pytest.approx((5 / 3 + 1) / 2)
    assert figure.n == 2
    # A second round of the first request is averaged with the first before samples are.
    again = of(turn(2, steps=((1, 0, 1),)), sample="1", repeat=1)
    assert values(turns + again)["specdec_bench_al"] == pytest.approx(((5 / 3 + 1) / 2 + 1) / 2)


def test_imported_turns_give_what_their_entries_tell_and_say_so(imported, of):
    figures = acceptance_figures(of(imported([1, 5, 1, 3, 2])))
    assert figures["spec_bench_mean_accepted"].value == pytest.approx(2.4)
    assert figures["acceptance_length"].value == pytest.approx(2.4)
    assert figures["acceptance_length"].signature == PREFILL_UNKNOWN
    assert figures["accepted_per_step"].value == pytest.approx(1.4)
    lacking = {name for name, figure in figures.items() if figure.value is None}
    assert lacking == {
        "acceptance_length_raw",
        "accepted_per_step_raw",
        "tokens_per_target_pass",
        "specdec_bench_al",
        "vllm_acceptance_length",
        "acceptance_rate",
        "acceptance_rate_raw",
        "acceptance_rate_nodes",
        "acceptance_rate_mean_of_samples",
        "nodes_per_step",
    }
    assert {figures[name].reason for name in lacking} == {"not recorded in the imported file"}


def test_an_import_that_tells_the_prefill_keeps_the_names_exact(imported, of):
    figures = acceptance_figures(of(imported([5, 1, 3, 2], emits=1)))
    assert figures["acceptance_length"].value == pytest.approx(2.75)
    assert figures["acceptance_length"].signature == ""
    assert figures["tokens_per_target_pass"].value == pytest.approx(2.4)
    assert figures["spec_bench_mean_accepted"].value == pytest.approx(2.4)


def test_turns_without_steps_are_left_out_and_not_counted(imported, of):
    turns = of(imported([2, 2]), sample="1") + of(imported(None, tokens=9), sample="2")
    figure = acceptance_figures(turns)["acceptance_length"]
    assert (figure.value, figure.n) == (2.0, 1)
    alone = acceptance_figures(turns[1:])
    assert {figure.reason for figure in alone.values()} == {"not recorded in the imported file"}
    assert all(figure.value is None for figure in alone.values())


def test_nothing_at_all_has_the_reason_given():
    assert {figure.reason for figure in acceptance_figures([], "3 of 3 cells failed").values()} == {
        "3 of 3 cells failed"
    }
    assert {figure.reason for figure in acceptance_figures([]).values()} == {"no sample ended without error"}


@given(st.integers(1, 8), st.data())
def test_fixed_chains_obey_the_identity(turn, of, length, data):
    accepted = data.draw(st.lists(st.integers(0, length), min_size=1, max_size=30))
    found = values(of(turn(1 + sum(accepted) + len(accepted), steps=[(length, a, a + 1) for a in accepted])))
    assert found["acceptance_length_raw"] == pytest.approx(1 + length * found["acceptance_rate_raw"])
    assert found["vllm_acceptance_length"] == pytest.approx(found["acceptance_length_raw"])


@given(st.lists(STEP, min_size=1, max_size=30), st.integers(0, 3))
def test_figures_of_one_trace_agree_with_each_other(turn, of, steps, cut):
    drafted, accepted, kept = steps[-1]
    steps = [*steps[:-1], (drafted, accepted, max(1, kept - cut))]
    made = turn(1 + sum(k for _, _, k in steps), steps=steps)
    found, places = values(of(made)), positions(of(made))
    count, drafting = len(steps), sum(d > 0 for d, _, _ in steps)
    assert found["block_efficiency"] == pytest.approx(found["acceptance_length"])
    assert found["accepted_per_step_raw"] == pytest.approx(found["acceptance_length_raw"] - 1)
    assert found["accepted_per_step"] <= found["accepted_per_step_raw"]
    assert -1e-9 <= found["acceptance_length"] - found["accepted_per_step"] <= 1 + 1e-9
    assert found["spec_bench_mean_accepted"] == pytest.approx(found["tokens_per_target_pass"])
    if drafting:
        hits = sum(figure.value for figure in places["vllm"])
        assert hits == pytest.approx(found["vllm_acceptance_length"] - 1)
        assert hits * drafting / count == pytest.approx(found["acceptance_length_raw"] - 1)


def test_what_an_imported_step_accepted_is_told_to_be_derived(turn, imported, of):
    ours = acceptance_figures(of(turn(3, steps=((4, 4, 2),))))["accepted_per_step"]
    theirs = acceptance_figures(of(imported(kept=(2,), emits=1)))["accepted_per_step"]
    assert (ours.value, ours.signature) == (2.0, "")
    assert (theirs.value, theirs.signature) == (1.0, CUT_UNKNOWN)
