"""The gate's rules on sides with planted faults."""

import pytest

from draftboard.errors import UserError
from draftboard.gate import Rules, compare

from made_sides import one_turn, side, simulated

SAME = simulated("before", seed=1, samples=24, rounds=2)


def check(before, after, label="samd", **rules):
    report = compare(before, after, Rules(**rules))
    (found,) = [check for check in report.checks if check.method == label]
    return found, report.exit_code


def test_equal_code_passes():
    found, code = check(SAME, simulated("after", seed=2, samples=24, rounds=2), require_lossless=True)
    assert (found.outcome, found.speed.decision, code) == ("pass", "same", 0)
    assert set(found.domains) == {f"d{i}" for i in range(6)}
    assert found.reasons == ()


def test_a_slowdown_fails_with_the_figure_and_its_interval_named():
    found, code = check(SAME, simulated("after", seed=2, samples=24, rounds=2, slower=0.2))
    assert (found.outcome, code) == ("fail", 1)
    (reason,) = found.reasons
    assert reason.startswith("speedup (geometric mean over domains) ")
    assert "95% interval" in reason
    assert "at most 2.00% slower is allowed" in reason


def test_a_slowdown_within_the_allowance_passes_and_a_speedup_is_told():
    slower = simulated("after", seed=2, samples=24, rounds=2, slower=0.2)
    assert check(SAME, slower, max_slowdown=0.4)[0].outcome == "pass"
    found, code = check(slower, SAME)
    assert (found.outcome, found.speed.decision, code) == ("pass", "faster", 0)


def test_the_clock_decides_what_is_seen():
    sleeps = simulated("after", seed=2, samples=24, rounds=2, slower=0.2)
    assert check(SAME, sleeps, clock="wall")[1] == 1
    assert check(SAME, sleeps, clock="cpu")[1] == 0
    works = simulated("after", seed=2, samples=24, rounds=2, slower=0.2, cpu_slower=0.2)
    assert check(SAME, works, clock="cpu")[1] == 1


def test_the_baseline_is_shown_and_gated_by_time_only():
    slow = simulated("after", seed=2, samples=24, rounds=2)
    machine = side(
        "after",
        {
            label: {
                key: [one_turn(2 * turn.wall_s, turn.tokens) for turn in turns] for key, turns in method.cells.items()
            }
            for label, method in slow.methods.items()
        },
        domains=slow.domains,
    )
    found, code = check(SAME, machine, "autoregressive")
    assert (found.gated, found.speed.decision, found.outcome, code) == (False, "slower", "pass", 0)
    assert check(SAME, machine, "autoregressive", quantity="time")[1] == 1


@pytest.mark.parametrize(
    ("dtype", "output", "passes"),
    [
        ("float32", "identical", True),
        ("float32", "tie-divergent", False),
        ("bfloat16", "tie-divergent", True),
        ("float16", "different", False),
        ("float32", "lossy", False),
        ("float32", "", False),
    ],
)
def test_lossless_is_exact_in_full_precision_and_allows_ties_in_half(dtype, output, passes):
    conditions = {"hardware": "here", "dtype": dtype}
    cells = {"samd": {(f"s{i}", 0): [one_turn(1.0 + i)] for i in range(4)}}
    cells["autoregressive"] = cells["samd"]
    sides = [side(name, cells, conditions=conditions, of={"samd": {"output": output}}) for name in "ab"]
    assert check(*sides, require_lossless=True)[1] == (0 if passes else 1)
    assert check(*sides)[1] == 0


def accepting(kept):
    cells = {
        label: {(f"s{i}", 0): [one_turn(1.0 + i, kept=kept + i if label == "samd" else 40, steps=40)] for i in range(8)}
        for label in ("autoregressive", "samd")
    }
    return side("x", cells)


def test_a_drop_of_acceptance_fails_only_where_the_rule_asks():
    before, after = accepting(80), accepting(70)
    found, code = check(before, after, min_acceptance_drop=0.05)
    assert code == 1
    assert "acceptance length (pooled over steps) 2.087 → 1.837 (-12.0%" in found.reasons[0]
    assert check(before, after)[1] == 0
    assert check(before, after, min_acceptance_drop=0.2)[1] == 0
    assert check(after, before, min_acceptance_drop=0.0)[1] == 0


def test_other_conditions_are_neither_pass_nor_fail():
    other = simulated("after", seed=2, samples=24, conditions={"hardware": "there", "dtype": "float32"})
    report = compare(SAME, other, Rules())
    assert report.exit_code == 2
    assert report.checks == ()
    assert report.refused == ("hardware: here → there",)


def test_a_method_that_is_gone_is_not_comparable_unless_others_are_asked_for():
    after = simulated("after", seed=2, samples=24, rounds=2)
    lacking = side("after", {"autoregressive": after.methods["autoregressive"].cells}, domains=after.domains)
    found, code = check(SAME, lacking)
    assert (found.outcome, found.reasons, code) == ("not comparable", ("after does not have it",), 2)
    assert compare(SAME, lacking, Rules(methods=("autoregressive",))).exit_code == 0
    with pytest.raises(UserError, match="neither side has pld"):
        compare(SAME, lacking, Rules(methods=("pld",)))


def test_without_a_baseline_the_time_is_compared_unless_the_speedup_is_asked_for():
    sides = [
        side(
            name, {"samd": simulated(name, seed=seed, samples=24, drift=0).methods["samd"].cells}, domains=SAME.domains
        )
        for seed, name in enumerate(("before", "after"), 1)
    ]
    found, code = check(*sides)
    assert (found.speed.figure, code) == ("tokens per second (geometric mean over domains)", 0)
    with pytest.raises(UserError, match="before has no autoregressive"):
        compare(*sides, Rules(quantity="speedup"))


def test_turns_with_other_prompts_are_not_paired_and_that_is_told():
    def answers(prompt):
        cells = {(f"s{i}", 0): [one_turn(1.0), one_turn(2.0, prompt=prompt if i == 0 else "q")] for i in range(4)}
        cells["s9", 0] = [one_turn(1.0, prompt=prompt)]
        return side("x", {"autoregressive": cells, "samd": cells})

    found, code = check(answers("q"), answers("other"))
    assert code == 0
    assert found.speed.n == 4
    assert "1 of 5 cells could not be paired" in found.notes


def test_more_failed_cells_than_before_fail():
    after = simulated("after", seed=2, samples=24, rounds=2, of={"samd": {"failed": 3}})
    found, code = check(SAME, after)
    assert (found.reasons, code) == (("3 of its cells failed",), 1)


def test_one_round_and_one_sample_say_what_cannot_be_told():
    single = simulated("before", seed=1, samples=24, rounds=1)
    found, _ = check(single, simulated("after", seed=2, samples=24, rounds=1))
    assert any("--repeats 3" in note for note in found.notes)
    alone = side("x", {name: {("s0", 0): [one_turn(1.0)]} for name in ("autoregressive", "samd")})
    found, code = check(alone, alone)
    assert (found.speed.interval, code) == (None, 0)
    assert any("too few samples" in note for note in found.notes)


def test_a_method_whose_cells_all_failed_fails_and_one_that_never_ran_is_not_comparable():
    gone = dict(SAME.methods["samd"].cells)
    for failed, outcome, code in ((3, "fail", 1), (0, "not comparable", 2)):
        after = side(
            "after",
            {"autoregressive": gone, "samd": {}},
            domains=SAME.domains,
            of={"samd": {"failed": failed}},
        )
        found, said = check(SAME, after)
        assert (found.outcome, said) == (outcome, code)
        assert "after has no answer of samd that ended well" in found.reasons


def test_a_candidate_that_was_broken_off_does_not_pass():
    after = simulated("after", seed=2, samples=24, rounds=2, of={"samd": {"missing": 5}})
    found, code = check(SAME, after)
    assert (found.outcome, code) == ("not comparable", 2)
    assert found.reasons == ("5 of its cells have not run: finish after with draftboard run --resume",)
    slower = simulated("after", seed=2, samples=24, rounds=2, slower=0.2, of={"samd": {"missing": 5}})
    assert check(SAME, slower)[0].outcome == "fail"
    found, code = check(after, SAME)
    assert (found.outcome, code) == ("pass", 0)
    assert "5 of its cells have not run in after" in found.notes


def test_a_method_named_twice_is_compared_once():
    report = compare(SAME, SAME, Rules(methods=("samd", "samd")))
    assert [found.method for found in report.checks] == ["samd"]


def test_a_round_without_cells_costs_the_others_nothing():
    """Rounds 1 to 5, such as where all of round 0 failed, are those of 0 to 4 by another number."""

    def change(first):
        sides = []
        for seed, slower in ((1, 0.0), (2, 0.1)):
            made = simulated("side", seed=seed, samples=12, rounds=5, domains=2, slower=slower)
            methods = {
                label: {(sample, number + first): turns for (sample, number), turns in method.cells.items()}
                for label, method in made.methods.items()
            }
            sides.append(side("side", methods, domains=made.domains))
        (checked,) = (found for found in compare(*sides, Rules()).checks if found.method == "samd")
        return checked.speed, checked.domains

    assert change(1) == change(0)
