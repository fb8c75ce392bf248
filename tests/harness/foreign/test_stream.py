import json
import re
from decimal import Decimal

import pytest

from draftboard.errors import UserError
from draftboard.foreign.stream import read_stream, requests_of, stream_figures
from draftboard.results import Figure


def chunk(text=None, *, index=0, finish=None, **delta):
    if text is not None:
        delta["content"] = text
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def usage(count):
    return {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": count}}


def events(*pairs, sent=0.0):
    start = [] if sent is None else [{"t": sent, "event": "request_sent"}]
    return [*start, *({"t": t, "data": data} for t, data in pairs)]


def figures(*pairs, sent=0.0):
    return stream_figures(requests_of(enumerate(events(*pairs, sent=sent), start=1)))


GOOD = (
    (0.1, chunk("", role="assistant")),
    (0.2, chunk("a b")),
    (0.6, chunk(" c d e")),
    (0.7, chunk(finish="stop")),
    (0.8, usage(5)),
    (0.9, "[DONE]"),
)


def test_case_20(case):
    (group,) = read_stream([case("20-stream-events.jsonl")]).groups
    found = {name: figure.value for name, figure in group.methods[0].overall.items()}
    assert found == pytest.approx({"output_tokens_total": 21, "ttft_s": 0.2, "tokens_per_s": 35.0, "tpot_mean_s": 0.02})
    assert "first chunk as one token" in group.methods[0].overall["tpot_mean_s"].signature
    assert group.notes == ()


def test_chunks_are_never_tokens():
    found = figures(*GOOD[:4], GOOD[5])
    assert found["output_tokens_total"].value is None
    assert "chunks are not tokens" in found["output_tokens_total"].reason
    assert found["tokens_per_s"].value is None
    assert found["tpot_mean_s"].value is None
    assert found["ttft_s"].value == pytest.approx(0.2)


def test_usage_may_be_null_first_and_grow():
    growing = [(t, {**data, "usage": None} if isinstance(data, dict) else data) for t, data in GOOD[:2]]
    growing += [
        (0.5, {**chunk("c"), "usage": {"completion_tokens": 3}}),
        (0.6, {**chunk("d"), "usage": {"completion_tokens": 5}}),
    ]
    assert figures(*growing)["output_tokens_total"].value == 5


@pytest.mark.parametrize(
    "odd", [{"completion_tokens": None}, {"completion_tokens": -1}, {"completion_tokens": "5"}, {}, [], 3]
)
def test_an_odd_usage_block_is_none(odd):
    assert figures(*GOOD[:4], (0.8, {"choices": [], "usage": odd}))["output_tokens_total"].value is None


def test_reasoning_is_text_and_the_answer_has_its_own_wait():
    found = figures((0.1, chunk(reasoning_content="hm")), (0.5, chunk("yes")), (0.6, usage(9)))
    assert found["ttft_s"].value == pytest.approx(0.1)
    assert found["ttft_answer_s"].value == pytest.approx(0.5)
    assert found["tokens_per_s"].value == pytest.approx(18)
    assert "ttft_answer_s" not in figures(*GOOD)


def test_tool_calls_and_completions_are_text_too():
    found = figures(
        (0.1, chunk(tool_calls=[{"index": 0}])), (0.3, {"choices": [{"index": 0, "text": "x"}]}), (0.4, usage(3))
    )
    assert found["ttft_s"].value == pytest.approx(0.1)
    assert found["tokens_per_s"].value == pytest.approx(10)


def test_several_answers_at_once_have_no_mean_token_time():
    found = figures((0.1, chunk("a")), (0.2, chunk("b", index=1)), (0.3, chunk("c")), (0.4, usage(6)))
    assert found["output_tokens_total"].value == 6
    assert found["tokens_per_s"].value == pytest.approx(20)
    assert found["tpot_mean_s"].value is None
    assert "several answers" in found["tpot_mean_s"].reason


def test_without_the_time_of_the_request_there_is_no_wait():
    found = figures(*GOOD, sent=None)
    assert found["ttft_s"].value is None
    assert found["tokens_per_s"].value is None
    assert found["output_tokens_total"].value == 5
    assert found["tpot_mean_s"].value == pytest.approx(0.1)


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_token_has_no_mean_time(count):
    found = figures((0.2, chunk("a")), (0.3, usage(count)))
    assert found["tpot_mean_s"].value is None


def test_all_text_in_one_chunk_is_no_time_of_zero():
    assert figures((0.2, chunk("a b c")), (0.3, usage(3)))["tpot_mean_s"].value is None


def test_no_text_at_all():
    found = figures((0.2, chunk(finish="stop")), (0.3, usage(0)))
    assert found["ttft_s"].value is None
    assert found["output_tokens_total"].value == 0


def test_several_requests_are_pooled():
    rows = [*events(*GOOD), *events(*((t + 5, data) for t, data in GOOD[:4]), (6.0, usage(7)), sent=5.0)]
    found = stream_figures(requests_of(enumerate(rows, start=1)))
    assert found["output_tokens_total"].value == 12
    assert found["tokens_per_s"].value == pytest.approx(12 / 1.2)
    assert found["ttft_s"].n == 2


def test_interleaved_requests_are_told_apart_by_their_id():
    rows = []
    for name, shift in (("a", 0.0), ("b", 0.05)):
        rows += [{**row, "request_id": name, "t": row["t"] + shift} for row in events(*GOOD)]
    rows.sort(key=lambda row: row["t"])
    requests = requests_of(enumerate(rows, start=1))
    assert [request.tokens for request in requests] == [5, 5]
    assert [request.wait for request in requests] == [pytest.approx(0.2)] * 2


def test_lines_of_an_event_stream_as_they_came(write):
    lines = [
        ": keep-alive",
        "event: message",
        *(f"data: {json.dumps(data)}" for _, data in GOOD[:-1]),
        "",
        "data: [DONE]",
    ]
    (group,) = read_stream([write("a.sse", lines)]).groups
    found = group.methods[0].overall
    assert found["output_tokens_total"].value == 5
    assert found["ttft_s"].value is None


def test_payloads_as_text_and_other_clocks(write):
    rows = [{"t_ms": 0, "event": "request_sent"}]
    rows += [
        {"t_ms": t * 1000, "data": data if isinstance(data, str) else f"data: {json.dumps(data)}"} for t, data in GOOD
    ]
    (group,) = read_stream([write("a.jsonl", rows)], label="mine").groups
    assert group.methods[0].method == "mine"
    assert group.methods[0].overall["tokens_per_s"].value == pytest.approx(5 / 0.6)


@pytest.mark.parametrize(
    "data",
    [
        {"error": {"message": "too\nlong", "code": 400}},
        {"error": "too long"},
        {"object": "error", "message": "too long", "code": 400},
    ],
)
def test_failed_requests_are_counted_and_left_out(write, data):
    rows = [*events(*GOOD), *events((5.1, chunk("a")), (5.2, data), sent=5.0)]
    (group,) = read_stream([write("a.jsonl", rows)]).groups
    (method,) = group.methods
    assert method.notes == ("1 × failed: too long",)
    assert method.overall["output_tokens_total"].value == 5
    (group,) = read_stream([write("b.jsonl", events((0.1, data)))]).groups
    assert group.methods[0].overall["ttft_s"].reason == "every request failed"


def test_a_clock_that_runs_backwards_is_told(write):
    rows = events((0.5, chunk("a")), (0.2, chunk("b")), (0.8, usage(4)), (0.9, "[DONE]"))
    (group,) = read_stream([write("a.jsonl", rows)]).groups
    assert any("clock ran backwards" in note for note in group.notes)
    assert all(figure.value is None for figure in group.methods[0].overall.values())


def test_an_answer_that_was_cut_off_is_told(write):
    (group,) = read_stream([write("a.jsonl", events(*GOOD[:3]))]).groups
    assert any("may be cut off" in note for note in group.notes)


@pytest.mark.parametrize("rows", [[": nothing"], ["event: x", "id: 1"]])
def test_files_without_an_event_are_refused(write, rows):
    with pytest.raises(UserError, match="no event"):
        read_stream([write("a.jsonl", rows)])


def test_other_files_are_refused(write):
    with pytest.raises(UserError, match=":1"):
        read_stream([write("a.jsonl", ["[1, 2]", "{}"])])


def test_text_without_a_time_takes_its_figure_with_it():
    later = figures((None, chunk("a")), (0.6, chunk("b")), (0.7, usage(5)))
    assert later["ttft_s"].value is None
    assert later["tokens_per_s"].value == pytest.approx(5 / 0.6)
    cut = figures((0.2, chunk("a")), (None, chunk("b")), (0.7, usage(5)))
    assert cut["ttft_s"].value == pytest.approx(0.2)
    assert cut["tokens_per_s"].value is None
    assert cut["tpot_mean_s"].value is None


@pytest.mark.parametrize("huge", [10**400, 1e300, float("inf"), float("nan")])
def test_numbers_beyond_all_measure_are_not_known(huge):
    found = figures((0.2, chunk("a")), (huge, chunk("b")), (0.7, usage(huge)))
    assert found["ttft_s"].value == pytest.approx(0.2)
    assert {name: found[name].value for name in ("output_tokens_total", "tokens_per_s", "tpot_mean_s")} == {
        "output_tokens_total": None,
        "tokens_per_s": None,
        "tpot_mean_s": None,
    }


def test_a_file_of_something_else_is_refused(write):
    with pytest.raises(UserError, match="no event"):
        read_stream([write("answers.jsonl", [{"question_id": 1}])])


def test_a_broken_payload_is_an_error_inside_and_told_at_the_end(write):
    good = "data: " + json.dumps(chunk("a"))
    with pytest.raises(UserError) as told:
        read_stream([write("a.txt", [good, 'data: {"choi', good])])
    assert "a.txt:2" in str(told.value)
    (group,) = read_stream([write("b.txt", [good, 'data: {"choi'])]).groups
    assert any("line 2 is unfinished" in note for note in group.notes)
    (group,) = read_stream([write("c.jsonl", events((0.1, chunk("a")), (0.2, "{broken"), (0.3, usage(2))))]).groups
    assert any("1 event(s) whose payload is not JSON" in note for note in group.notes)


def named(event, at=0.0):
    return {"t": at, "event": event}


def payloads(start=0.0):
    return [{"t": start + t, "data": data} for t, data in GOOD]


@pytest.mark.parametrize("event", ["request_sent", "Request-Sent", "requestStart", "request"])
def test_known_names_of_the_request_are_not_told(write, event):
    (group,) = read_stream([write("a.jsonl", [named(event), *payloads()])]).groups
    assert group.methods[0].overall["ttft_s"].value == pytest.approx(0.2)
    assert group.notes == ()


@pytest.mark.parametrize("event", ["sent", "start", "request_started", "Begin", "send", "dispatch", "POST /v1"])
def test_an_event_before_the_first_payload_starts_the_request_and_is_told(write, event):
    (group,) = read_stream([write("a.jsonl", [named(event), *payloads()])]).groups
    assert group.methods[0].overall["ttft_s"].value == pytest.approx(0.2)
    assert group.notes == (f"a.jsonl:1: the event {event!r} is taken as the start of the request",)


@pytest.mark.parametrize("event", ["first_token", "response_headers", "stream_end", "done", "", 3, None])
def test_events_of_the_answer_start_no_request(write, event):
    (group,) = read_stream([write("a.jsonl", [named(event, 0.05), *payloads()])]).groups
    assert group.methods[0].overall["ttft_s"].value is None
    assert group.notes == ()


def test_of_several_events_the_one_that_says_it_was_sent_counts_else_the_first(write):
    rows = [named("connect"), named("sent", 0.05), named("flushed", 0.06), *payloads()]
    (group,) = read_stream([write("a.jsonl", rows)]).groups
    assert group.methods[0].overall["ttft_s"].value == pytest.approx(0.15)
    assert group.notes == ("a.jsonl:2: the event 'sent' is taken as the start of the request",)
    rows = [named("dns"), named("connect", 0.05), *payloads()]
    (group,) = read_stream([write("b.jsonl", rows)]).groups
    assert group.methods[0].overall["ttft_s"].value == pytest.approx(0.2)
    # Two names of one request are not two requests.
    rows = [named("request_start"), named("request_sent", 0.05), *payloads()]
    (group,) = read_stream([write("c.jsonl", rows)]).groups
    assert group.methods[0].overall["ttft_s"] == Figure(value=pytest.approx(0.2), n=1)


@pytest.mark.parametrize("event", ["sent", "start", "dispatch"])
@pytest.mark.parametrize("marker", [True, False])
def test_requests_of_one_file_start_by_any_name(write, event, marker):
    rows = [
        row
        for start in (0.0, 5.0)
        for row in (named(event, start), *payloads(start)[: None if marker else -1], named("logged", start + 0.95))
    ]
    (group,) = read_stream([write("a.jsonl", rows)]).groups
    figures = group.methods[0].overall
    assert figures["output_tokens_total"] == Figure(value=10, n=2)
    assert figures["ttft_s"].value == pytest.approx(0.2)
    assert group.notes == (f"a.jsonl:1 and 1 more: the event {event!r} is taken as the start of the request",)


def test_an_event_in_the_middle_of_an_answer_changes_nothing(write):
    rows = [named("request_sent"), *payloads()]
    (plain,) = read_stream([write("a.jsonl", rows)]).groups
    for event in ("start", "progress", "dispatch"):
        (group,) = read_stream([write("a.jsonl", [*rows[:3], named(event, 0.3), *rows[3:]])]).groups
        assert group.methods == plain.methods


def test_a_request_without_an_answer_is_one_of_the_requests(write):
    rows = [named("request_sent"), *payloads(), named("request_sent", 9.0), named("request_sent", 19.0)]
    (group,) = read_stream([write("a.jsonl", rows)]).groups
    assert group.methods[0].overall["ttft_s"].reason.startswith("2 of 3 requests")


@pytest.mark.parametrize(
    ("clock", "scale", "epoch"),
    [
        ("t", 1, "1700000000"),
        ("t", 1, "1764500000.123456"),
        ("t_ms", 1000, "1764500000.5"),
        ("t_ns", 10**9, "1764500000.123456789"),
    ],
)
def test_case_20_with_stamps_since_1970(case, write, clock, scale, epoch):
    def stamped(match):
        return f'"{clock}": {(Decimal(match[1]) + Decimal(epoch)) * scale:f}'

    text = re.sub(r'"t": ([\d.]+)', stamped, case("20-stream-events.jsonl").read_text(encoding="utf-8"))
    (group,) = read_stream([write("a.jsonl", [text.strip()])]).groups
    found = {name: figure.value for name, figure in group.methods[0].overall.items()}
    exact = {"output_tokens_total": 21, "ttft_s": 0.2, "tokens_per_s": 35.0, "tpot_mean_s": 0.02}
    assert found == pytest.approx(exact, abs=1e-9, rel=0)


@pytest.mark.parametrize("odd", ["1e400", "1e99999999999999999999", "-1e999999999", "1e-99999999999999999999", "NaN"])
def test_numbers_that_no_float_holds_are_no_times(write, odd):
    lines = ['{"t": 0.0, "event": "request_sent"}', '{"t": ODD, "data": {"choices": []}}'.replace("ODD", odd)]
    (group,) = read_stream([write("a.jsonl", [*lines, *payloads()])]).groups
    assert group.methods[0].overall["tokens_per_s"].value == pytest.approx(5 / 0.6)
