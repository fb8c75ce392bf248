"""The names of figures that serving tools measured."""

from collections.abc import Iterator
from functools import partial

from draftboard.metric_kinds import Metric, of_kind

__all__ = ["serving"]


def serving() -> Iterator[Metric]:
    """Figures of other tools, which come as aggregates over requests and keep their own definitions."""
    served = partial(of_kind, "serving")
    rate = "tok/s"
    yield served("output_tokens_per_s", "Output tokens/s", "tokens of all requests over the whole span", rate, 1)
    yield served(
        "output_tokens_per_s_per_gpu",
        "Output tokens/s per GPU",
        "tokens of all requests over the whole span and GPUs",
        rate,
        1,
    )
    yield served(
        "output_tokens_per_s_max", "Output tokens/s, peak", "tokens of all requests in the busiest second", rate, 1
    )
    yield served("total_tokens_per_s", "Total tokens/s", "prompts and output over the whole span", rate, 1)
    yield served("requests_per_s", "Requests/s", "finished requests over the whole span", "1/s")
    yield served("goodput_requests_per_s", "Goodput", "requests that met their targets over the whole span", "1/s")
    yield served("user_tokens_per_s", "User tokens/s", "decode-only rate of one request, median", rate, 1)
    yield served("user_tokens_per_s_mean", "User tokens/s, mean", "decode-only rate of one request, mean", rate, 1)
    yield served(
        "user_tokens_per_s_p5", "User tokens/s, p5", "decode-only rate of one request, 5th percentile", rate, 1
    )
    yield served("output_tokens", "Output tokens", "tokens of one request, median", digits=0)
    yield served("output_tokens_mean", "Output tokens, mean", "tokens of one request, mean", digits=1)
    yield served("output_tokens_total", "Output tokens, total", "tokens of all requests together", digits=0)
    yield served("drafts", "Drafts", "drafts that the server made", digits=0)
    yield served("drafted_tokens", "Drafted tokens", "tokens that the server drafted", digits=0)
    yield served("accepted_tokens", "Accepted tokens", "drafted tokens that the server accepted", digits=0)
    yield served(
        "ttft_answer_s",
        "Time to first answer text",
        "time to the first text behind any reasoning, median",
        "s",
        3,
        up=False,
    )
    for name, title, about, levels in (
        ("ttft", "TTFT", "time to first token over requests", ("mean", "p95")),
        (
            "tpot",
            "Time per output token",
            "seconds per token of one request, its first chunk as one token",
            (*_LEVELS, "p50"),
        ),
        ("step_gap", "Step gap", "time between chunks", ("mean", "p90")),
        ("e2e", "Request time", "time from the request to its last token", _LEVELS),
    ):
        for level in levels:
            told = f"{about}, {_LEVEL_WORDS[level]}"
            yield served(f"{name}_{level}_s", f"{title}, {level}", told, "s", 4, up=False)
    yield served("e2e_s", "Request time, median", "time from the request to its last token, median", "s", 3, up=False)


_LEVELS = ("mean", "p90", "p95", "p99")
_LEVEL_WORDS = {"mean": "mean", "p50": "median", **{f"p{n}": f"{n}th percentile" for n in (90, 95, 99)}}
