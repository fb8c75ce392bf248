"""Recorded events of streamed answers (OpenAI's chat and completions form) as figures of the requests.

How many tokens a chunk holds is unknown, and under speculation it is several: tokens come from the usage block or are
not known. Time counts from the request to events that carry text, since servers first send a role and nothing else.
Recorders name the event of the request as they like: an event without a payload that stands before the first payload is
the request's, and a note tells which was taken where its name is not one of the known ones.

Times are decimals as written: differences of seconds since 1970 would lose their last digits as floats.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median
from typing import Any

from draftboard.errors import UserError
from draftboard.foreign.figures import grouped
from draftboard.foreign.reading import read_rows, unsurrogated
from draftboard.results import Figure, MethodResult, Results

__all__ = ["StreamRequest", "read_stream", "requests_of", "stream_figures"]

_KNOWN = frozenset({"requestsent", "requeststart", "request"})
_SENT = _KNOWN | {"requeststarted", "requestsend", "requestbegin", "requestsubmitted", "sent", "send"}
_STARTS = _SENT | {"start", "started", "begin", "submit", "submitted"}
"""Names of a request's event without case, blanks and dashes; those outside `_KNOWN` are told. Those outside `_SENT`
may name other things in the middle of an answer."""
_ANSWERS = ("first", "response", "receiv", "header", "token", "chunk")
"""Parts of names that tell of the answer."""
_ENDS = ("end", "ended", "done", "finish", "finished", "closed", "complete", "completed", "stop", "stopped", "failed")
_SECOND, _MILLISECOND, _NANOSECOND = Decimal(1), Decimal("1e-3"), Decimal("1e-9")
_CLOCKS = {
    **dict.fromkeys(("t", "t_s", "time", "time_s", "timestamp"), _SECOND),
    "t_ms": _MILLISECOND,
    "t_ns": _NANOSECOND,
}
_DONE = "[DONE]"
_NO_USAGE = "no usage block; chunks are not tokens"
_FIRST_CHUNK = "takes the first chunk as one token"
_SKIP: Mapping[str, Any] = {}
_NAME = 40
_MOST = 10**12
"""More tokens or seconds than this were never measured."""


@dataclass(slots=True, kw_only=True)
class StreamRequest:
    """What the events of one request tell. Times are seconds on the recorder's clock; None where there was none."""

    place: str
    sent: Decimal | None = None
    start_event: str = ""
    """The event that was taken as the request's; empty where there was none."""
    opened: bool = False
    """Whether a payload was seen."""
    first: Decimal | None = None
    """Of the first event with any text, reasoning included."""
    first_answer: Decimal | None = None
    """Of the first event with text that is no reasoning."""
    last: Decimal | None = None
    """Of the last event with any text."""
    tokens: int | None = None
    chunks: int = 0
    """Events with text."""
    answered: bool = False
    """Whether any of them had text that is no reasoning."""
    unreadable: int = 0
    """Payloads that are not JSON."""
    choices: set[int] = field(default_factory=set)
    reasoning: bool = False
    error: str = ""
    finished: bool = False
    """Whether a finish reason or the closing marker was seen."""
    closed: bool = False
    """Whether the closing marker was seen: what follows is another request."""
    backwards: bool = False
    """Whether the clock ran backwards."""

    @property
    def wait(self) -> float | None:
        """Seconds from the request to the first text."""
        return _between(self.sent, self.first)

    @property
    def total(self) -> float | None:
        """Seconds from the request to the last text."""
        return _between(self.sent, self.last)

    @property
    def told(self) -> bool:
        """Whether any event of it was one of a streamed answer."""
        sent = self.sent is not None and _folded(self.start_event) in _KNOWN
        return bool(sent or self.tokens is not None or self.choices or self.error or self.finished)

    @property
    def mean_token_s(self) -> float | None:
        """(last text - first text) / (tokens - 1): a mean that takes the first chunk as one token."""
        spread = _between(self.first, self.last)
        if spread is None or self.tokens is None or self.tokens < 2 or len(self.choices) > 1 or self.chunks < 2:
            return None
        return spread / (self.tokens - 1)


def read_stream(paths: Sequence[Path], *, label: str = "stream", model: str = "", hardware: str = "") -> Results:
    """Read files of recorded events, one or more requests each, all of one method.

    Raises UserError for files that hold no event.
    """
    requests: list[StreamRequest] = []
    notes: list[str] = []
    for path in dict.fromkeys(paths):
        file = read_rows(path, parse=_parse)
        found = requests_of(file.rows, file.name)
        if not any(request.told for request in found):
            raise UserError(
                "holds no event of a streamed answer",
                where=str(path),
                advice='Each line is like {"t": 0.2, "data": {"choices": [...]}} or "data: {...}".',
            )
        notes += file.notes
        requests += found
    notes += _remarks(requests)
    method = MethodResult(method=label, overall=stream_figures(requests), notes=_failures(requests))
    conditions = {"model": model, "hardware": hardware, "requests": str(len(requests))}
    return Results(groups=grouped([(conditions, method)], notes=notes, source="streamed events"))


def requests_of(rows: Iterable[tuple[int, Any]], name: str = "") -> list[StreamRequest]:
    """Return the requests of parsed event rows: by `request_id` where rows have one, else one after the other."""
    current: dict[str, StreamRequest] = {}
    found: list[StreamRequest] = []
    clock: dict[str, Decimal] = {}
    usual: dict[str, str] = {}
    for line, row in rows:
        if not isinstance(row, dict):
            raise UserError("an event has to be an object", where=f"{name}:{line}")
        if row is _SKIP or not row:
            continue
        key, event, time = str(row.get("request_id", "")), _start_event(row), _time(row)
        request = current.get(key)
        if _begins(event, row, request):
            request = None
        if request is None:
            request = current[key] = StreamRequest(place=f"{name}:{line}")
            found.append(request)
            clock.pop(key, None)
        if time is not None:
            request.backwards |= time < clock.get(key, time)
            clock[key] = time
        if event and not request.opened and _is_better(event, request.start_event, usual.get(key, "")):
            request.sent, request.start_event, request.place = time, event, f"{name}:{line}"
        elif not event:
            request.opened |= _has_payload(row)
            usual.setdefault(key, request.start_event)
            _take(request, row, time)
    # What follows a closing marker without a payload of its own was the end of the answer, no request.
    return [
        request for request in found if request.opened or _folded(request.start_event) in _STARTS or len(found) == 1
    ]


def _begins(event: str, row: Mapping[str, Any], request: StreamRequest | None) -> bool:
    """Whether a row is the first of another request than the one it would belong to."""
    if request is None:
        return False
    if request.closed:
        return bool(event) or _has_payload(row)
    if not event:
        return False
    folded, again = _folded(event), event == request.start_event
    if not request.opened:
        return again and folded in _STARTS
    return folded in _SENT or (bool(request.finished or request.error) and (again or folded in _STARTS))


def _start_event(row: Mapping[str, Any]) -> str:
    """Return the name of an event that may be a request's: it has no payload, and its name tells of no end."""
    event = row.get("event")
    if not isinstance(event, str) or _is_chunk(row):
        return ""
    folded = _folded(event)
    if folded in _STARTS:
        return event
    ends = folded.endswith(_ENDS) and not folded.endswith("send")
    return "" if not folded or _has_payload(row) or ends or any(part in folded for part in _ANSWERS) else event


def _is_better(event: str, taken: str, usual: str) -> bool:
    """Whether the event says more surely than the one taken that the request was sent.

    Events of the name that started the first request come before those of known names, these before others, which may
    belong to the end of the answer before; of the same kind the first one counts.
    """
    known = _folded(event) in _STARTS and _folded(taken) not in _STARTS
    return not taken or (taken != usual and (event == usual or known))


def _is_chunk(row: Mapping[str, Any]) -> bool:
    """Whether the row holds a part of a streamed answer, whatever its event is called."""
    data = row.get("data", row)
    if isinstance(data, str):
        return '"choices"' in data or _DONE in data
    return isinstance(data, dict) and any(name in data for name in ("choices", "error", "usage"))


def _has_payload(row: Mapping[str, Any]) -> bool:
    return bool(row.get("data")) or _is_chunk(row)


def _folded(event: str) -> str:
    return "".join(character for character in event.casefold() if character.isalnum())


def stream_figures(requests: Sequence[StreamRequest]) -> dict[str, Figure]:
    """Return the figures of these requests; failed ones and those whose clock ran backwards are left out."""
    good = [request for request in requests if not request.error and not request.backwards]
    n = len(good)
    if not good:
        reason = "every request failed" if all(request.error for request in requests) else "the clock ran backwards"
        names = ("output_tokens_total", "ttft_s", "tokens_per_s", "tpot_mean_s")
        return {name: Figure(value=None, n=0, reason=reason) for name in names}
    counted = [(r.tokens, r.total) for r in good if r.tokens is not None and r.total]
    tokens = [request.tokens for request in good if request.tokens is not None]
    figures = {
        "output_tokens_total": (
            Figure(value=float(sum(tokens)), n=n)
            if len(tokens) == n
            else Figure(value=None, n=n, reason=_some(_NO_USAGE, n - len(tokens), n))
        ),
        "ttft_s": _median([request.wait for request in good], n, "no time of the request, or no text"),
        "tokens_per_s": (
            Figure(
                value=sum(t for t, _ in counted) / math.fsum(s for _, s in counted),
                n=n,
                signature="from the request to the last text",
            )
            if len(counted) == n
            else Figure(value=None, n=n, reason=_why_no_rate(good))
        ),
        "tpot_mean_s": _mean_token(good),
    }
    if any(request.reasoning for request in good):
        waits = [_between(request.sent, request.first_answer) for request in good]
        figures["ttft_answer_s"] = _median(waits, n, "no answer after the reasoning")
    return figures


def _parse(text: str) -> Any:
    """Read a line: JSON with a time, or a line of an event stream as it came, without one."""
    if text.startswith((":", "event:", "id:", "retry:")):
        return _SKIP
    if not text.startswith("data:"):
        return json.loads(text, parse_float=_decimal)
    payload = text.removeprefix("data:").strip()
    return {"data": payload if payload in ("", _DONE) else json.loads(payload)}


def _time(row: Mapping[str, Any]) -> Decimal | None:
    for name, scale in _CLOCKS.items():
        value = row.get(name)
        odd = isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value))
        if odd or not isinstance(value, int | float | Decimal):
            continue
        # Compared before it is computed with, since exponents may be too large for that.
        if -_MOST / scale <= value <= _MOST / scale:
            return (Decimal(repr(value)) if isinstance(value, float) else Decimal(value)) * scale
    return None


def _decimal(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return float(text)


def _take(request: StreamRequest, row: Mapping[str, Any], time: Decimal | None) -> None:
    data = row.get("data", row if "choices" in row or "error" in row else None)
    if isinstance(data, str):
        data = _decoded(data, request)
    if not isinstance(data, dict):
        return
    error = data.get("error") or (data if data.get("object") == "error" else None)
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        request.error = " ".join(unsurrogated(str(message or error)).split())[:200]
    usage = data.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST:
        request.tokens = count
    choices = data.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            _take_choice(request, choice, time)


def _take_choice(request: StreamRequest, choice: Mapping[str, Any], time: Decimal | None) -> None:
    index = choice.get("index", 0)
    request.choices.add(index if isinstance(index, int) else 0)
    request.finished |= choice.get("finish_reason") is not None
    inner = choice.get("delta")
    delta: Mapping[str, Any] = inner if isinstance(inner, dict) else {}
    thought = bool(delta.get("reasoning_content") or delta.get("reasoning"))
    answer = any(delta.get(name) for name in ("content", "tool_calls", "function_call", "refusal"))
    answer = answer or bool(choice.get("text"))
    request.reasoning |= thought
    if not thought and not answer:
        return
    # An event without a time takes its figure with it: the next one's would be another figure.
    request.last = time
    if not request.chunks:
        request.first = time
    if answer and not request.answered:
        request.first_answer = time
    request.chunks += 1
    request.answered |= answer


def _decoded(text: str, request: StreamRequest) -> Any:
    text = text.removeprefix("data:").strip()
    if text == _DONE:
        request.finished = request.closed = True
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        request.unreadable += bool(text)
        return None


def _between(start: Decimal | None, end: Decimal | None) -> float | None:
    return float(end - start) if start is not None and end is not None and end >= start else None


def _median(values: Sequence[float | None], n: int, reason: str) -> Figure:
    known = [value for value in values if value is not None]
    if len(known) < n:
        return Figure(value=None, n=n, reason=_some(reason, n - len(known), n))
    return Figure(value=median(known), n=n)


def _mean_token(requests: Sequence[StreamRequest]) -> Figure:
    n = len(requests)
    values = [value for request in requests if (value := request.mean_token_s) is not None]
    if len(values) == n:
        return Figure(value=math.fsum(values) / n, n=n, signature=_FIRST_CHUNK)
    if any(request.tokens is None for request in requests):
        reason = _NO_USAGE
    elif any(len(request.choices) > 1 for request in requests):
        reason = "several answers at once: their tokens cannot be told apart"
    else:
        reason = "all text came at one time, or times are missing"
    return Figure(value=None, n=n, reason=_some(reason, n - len(values), n))


def _why_no_rate(requests: Sequence[StreamRequest]) -> str:
    lacking = sum(request.tokens is None for request in requests)
    if lacking:
        return _some(_NO_USAGE, lacking, len(requests))
    return _some("no time of the request, or no text", sum(not r.total for r in requests), len(requests))


def _some(reason: str, lacking: int, n: int) -> str:
    return reason if n == 1 else f"{lacking} of {n} requests: {reason}"


def _failures(requests: Sequence[StreamRequest]) -> tuple[str, ...]:
    reasons: dict[str, int] = {}
    for request in requests:
        if request.error:
            reasons[request.error] = reasons.get(request.error, 0) + 1
    return tuple(f"{count} × failed: {text}" for text, count in reasons.items())


def _remarks(requests: Sequence[StreamRequest]) -> list[str]:
    notes = []
    events: dict[str, list[str]] = {}
    for request in requests:
        if request.start_event and _folded(request.start_event) not in _KNOWN:
            events.setdefault(request.start_event, []).append(request.place)
    for event, places in events.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        shown = " ".join(unsurrogated(event).split())[:_NAME]
        notes.append(f"{places[0]}{more}: the event {shown!r} is taken as the start of the request")
    for request in requests:
        if request.backwards:
            notes.append(f"{request.place}: the clock ran backwards; the request is left out")
        if len(request.choices) > 1:
            notes.append(
                f"{request.place}: {len(request.choices)} answers at once; the tokens are those of all of them"
            )
        if request.unreadable:
            notes.append(f"{request.place}: {request.unreadable} event(s) whose payload is not JSON")
        if not request.error and not request.finished:
            notes.append(f"{request.place}: neither a finish reason nor a closing marker; the answer may be cut off")
    return notes
