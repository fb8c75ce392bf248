from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.foreign.counters import read_counters

NAMES = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def page(*workers, suffix="_total", prefix="vllm:", places=True, types=True, model="m"):
    """A page; each worker is (engine, drafts, drafted, accepted at each place)."""
    lines = []
    for index, name in enumerate(NAMES):
        full = f"{prefix}spec_decode_{name}{suffix}"
        if types:
            lines.append(f"# TYPE {full} counter")
        for engine, drafts, drafted, accepted in workers:
            value = (drafts, drafted, sum(accepted))[index]
            lines.append(f'{full}{{engine="{engine}",model_name="{model}"}} {float(value)}')
    for engine, _, _, accepted in workers if places else ():
        for place, count in enumerate(accepted):
            full = f"{prefix}spec_decode_num_accepted_tokens_per_pos{suffix}"
            lines.append(f'{full}{{engine="{engine}",model_name="{model}",position="{place}"}} {float(count)}')
    return "\n".join(lines) + "\n"


@pytest.fixture
def read(tmp_path: Path):
    def run(before, after):
        paths = tmp_path / "before.txt", tmp_path / "after.txt"
        for path, text in zip(paths, (before, after), strict=True):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_counters(*paths)

    return run


def found(results):
    (group,) = results.groups
    (method,) = group.methods
    return (
        {name: figure.value for name, figure in method.overall.items()},
        [figure.value for figure in method.positions["vllm"]],
        group,
    )


BEFORE = page((0, 10, 30, [8, 4, 2]), (1, 5, 15, [4, 2, 1]))
AFTER = page((0, 30, 90, [20, 14, 8]), (1, 15, 45, [9, 6, 3]))


def test_case_21(case):
    values, places, group = found(read_counters(case("21-metrics-before.txt"), case("21-metrics-after.txt")))
    assert values == pytest.approx(
        {
            "drafts": 100,
            "drafted_tokens": 300,
            "accepted_tokens": 165,
            "acceptance_rate": 0.55,
            "vllm_acceptance_length": 2.65,
        }
    )
    assert places == pytest.approx([0.80, 0.55, 0.30])
    assert (group.model, group.notes) == ("m", ())


EXPECTED = {
    "drafts": 30,
    "drafted_tokens": 90,
    "accepted_tokens": 39,
    "acceptance_rate": 39 / 90,
    "vllm_acceptance_length": 1 + 39 / 30,
}


@pytest.mark.parametrize("suffix", ["", "_total"])
@pytest.mark.parametrize("prefix", ["vllm:", "vllm_"])
@pytest.mark.parametrize("types", [True, False])
def test_names_with_and_without_their_ending(read, suffix, prefix, types):
    old = page((0, 10, 30, [8, 4, 2]), (1, 5, 15, [4, 2, 1]), suffix=suffix, prefix=prefix, types=types)
    new = page((0, 30, 90, [20, 14, 8]), (1, 15, 45, [9, 6, 3]), suffix=suffix, prefix=prefix, types=types)
    values, places, _ = found(read(old, new))
    assert values == pytest.approx(EXPECTED)
    assert places == pytest.approx([17 / 30, 14 / 30, 8 / 30])


def test_line_ends_marks_and_nul_tails(read):
    values, _, _ = found(read(b"\xef\xbb\xbf" + BEFORE.replace("\n", "\r\n").encode(), AFTER.encode() + b"\0" * 64))
    assert values == pytest.approx(EXPECTED)


def test_pages_of_workers_that_were_joined_are_added_up(read):
    old = page((0, 10, 30, [8, 4, 2])) + page((0, 5, 15, [4, 2, 1]))
    new = page((0, 30, 90, [20, 14, 8])) + page((0, 15, 45, [9, 6, 3]))
    values, _, group = found(read(old, new))
    assert values == pytest.approx(EXPECTED)
    assert any("added up" in note for note in group.notes)


def test_a_counter_that_fell_gives_no_figure(read):
    values, places, group = found(read(BEFORE, page((0, 3, 9, [2, 1, 0]), (1, 15, 45, [9, 6, 3]))))
    assert set(values.values()) == {None}
    assert places == [None, None, None]
    reasons = {figure.reason for figure in group.methods[0].overall.values()}
    assert reasons == {"engine 0 started anew in between, and its earlier counts are lost"}


def test_a_restart_is_known_by_its_time_even_where_the_counter_rose(read):
    def stamped(text, time):
        return text + f'vllm:spec_decode_num_drafts_created{{engine="0",model_name="m"}} {time}\n'

    values, _, _ = found(read(stamped(BEFORE, 1.7e9), stamped(AFTER, 1.8e9)))
    assert set(values.values()) == {None}
    values, _, _ = found(read(stamped(BEFORE, 1.7e9), stamped(AFTER, 1.7e9)))
    assert values == pytest.approx(EXPECTED)


def test_a_restart_is_known_by_the_start_of_the_process(read):
    def stamped(text, time, labels=""):
        return text + f"process_start_time_seconds{labels} {time}\n"

    values, places, _ = found(read(stamped(BEFORE, 1.7e9), stamped(AFTER, 1.8e9)))
    assert {*values.values(), *places} == {None}
    values, _, _ = found(read(stamped(BEFORE, 1.7e9), stamped(AFTER, 1.7e9)))
    assert values == pytest.approx(EXPECTED)
    # Of two processes under one name neither can be told to have started later.
    values, _, _ = found(read(stamped(stamped(BEFORE, 1.8e9), 1.7e9), stamped(stamped(AFTER, 1.7e9), 1.8e9)))
    assert values == pytest.approx(EXPECTED)


@pytest.mark.parametrize("fallen", [0, 1, 2])
def test_one_counter_that_fell_takes_all_of_its_worker_with_it(read, fallen):
    # After the restart the worker was busy: its other counters have risen past their old values.
    drafts, drafted, accepted = 500, 1500, [400, 300, 200]
    after = (
        (0, 9, drafted, accepted),
        (0, drafts, 29, accepted),
        (0, drafts, drafted, [400, 300, 1]),
    )[fallen]
    values, places, group = found(read(BEFORE, page(after, (1, 15, 45, [9, 6, 3]))))
    assert {*values.values(), *places} == {None}
    reasons = {figure.reason for figure in group.methods[0].overall.values()}
    reasons |= {figure.reason for figure in group.methods[0].positions["vllm"]}
    assert reasons == {"engine 0 started anew in between, and its earlier counts are lost"}


def test_a_restart_of_a_worker_takes_only_the_models_that_it_serves(read):
    old = BEFORE + page((7, 50, 150, [25]), model="org/other")
    new = page((0, 3, 90, [20, 14, 8]), (1, 15, 45, [9, 6, 3])) + page((7, 100, 300, [50]), model="org/other")
    groups = read(old, new).groups
    drafted = {group.model: group.methods[0].overall["drafted_tokens"].value for group in groups}
    assert drafted == {"m": None, "org/other": 150}


def test_a_worker_that_went_away_gives_no_figure(read):
    values, _, group = found(read(BEFORE, page((0, 30, 90, [20, 14, 8]))))
    assert values["drafts"] is None
    assert "engine 1 is on the first page only" in group.methods[0].overall["drafts"].reason


def test_a_worker_that_came_counts_from_zero_and_is_told(read):
    values, _, group = found(read(page((0, 10, 30, [8, 4, 2])), AFTER))
    assert values["drafts"] == 35
    assert any("engine 1 is on the second page only" in note for note in group.notes)


def test_missing_counters_are_said(read):
    old, new = (page(worker, places=False) for worker in ((0, 1, 3, [1]), (0, 5, 9, [3])))
    gone = "vllm:spec_decode_num_drafts_total"
    strip = lambda text: "\n".join(line for line in text.split("\n") if gone not in line)  # noqa: E731
    (group,) = read(strip(old), strip(new)).groups
    figures = group.methods[0].overall
    assert figures["acceptance_rate"].value == pytest.approx(2 / 6)
    assert figures["vllm_acceptance_length"].value is None
    assert "does not show spec_decode_num_drafts" in figures["vllm_acceptance_length"].reason
    assert group.methods[0].positions["vllm"] == ()


def test_nothing_happened_in_between(read):
    values, places, group = found(read(BEFORE, BEFORE))
    assert values["drafts"] == 0
    assert values["acceptance_rate"] is None
    assert places == [None] * 3
    assert group.methods[0].overall["vllm_acceptance_length"].reason == "no draft was made in between"


def test_each_served_model_has_its_own_figures(read):
    other = page((0, 100, 300, [50]), model="org/other")
    groups = read(BEFORE + page((0, 50, 150, [25]), model="org/other"), AFTER + other).groups
    assert [(group.model, group.methods[0].overall["drafts"].value) for group in groups] == [
        ("m", 30),
        ("org/other", 50),
    ]


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("", AFTER, "before.txt: is empty"),
        (BEFORE, "\r\n\0", "after.txt: is empty"),
        ("process_cpu_seconds_total 3.0\n", "process_cpu_seconds_total 4.0\n", "no counter of speculation"),
        (BEFORE, "<html>\n<body>404 not found</body>", "after.txt:"),
        ("vllm:spec_decode_num_drafts_total not-a-number\n", AFTER, "before.txt:1"),
        (b"\xff\xfeb\0", AFTER, "UTF-16"),
        (b"\xc3(", AFTER, "not UTF-8"),
    ],
)
def test_other_pages_are_refused(read, before, after, what):
    with pytest.raises(UserError) as told:
        read(before, after)
    assert what in str(told.value)


def test_values_that_are_not_finite_are_no_counters(read):
    values, _, _ = found(read(BEFORE, AFTER.replace(" 30.0", " NaN", 1)))
    assert values["drafts"] is None


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "1e308"])
def test_a_value_that_cannot_be_a_count_is_a_reason(read, odd):
    after = AFTER.replace(
        'num_drafts_total{engine="0",model_name="m"} 30.0', f'num_drafts_total{{engine="0",model_name="m"}} {odd}'
    )
    (group,) = read(BEFORE, after).groups
    overall = group.methods[0].overall
    assert overall["drafts"].reason == "engine 0 gives no number that can be a count"
    assert overall["acceptance_rate"].value is not None
