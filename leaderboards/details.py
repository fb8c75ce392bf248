"""What stands behind the board: the same run by every definition in use, each under its own name.

One number without its name misleads: the same trace is an acceptance length of 2.75, 3.25 or 2.2, and one pair of
runs a speedup of 1.59 or 1.79, as this or that tool counts. Nothing here is ranked.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from draftboard.leaderboards.quality import quality_note
from draftboard.leaderboards.ranking import Standing, headline, standings, usable
from draftboard.leaderboards.table import Footnotes, Level, Measure, Table, assemble, lines_of, oriented
from draftboard.metrics import Metric, metric
from draftboard.results import Group

__all__ = ["detail_tables", "serving_table"]

_NEUTRAL = (
    "nodes_per_step",
    "draft_share",
    "verify_share",
    "other_share",
    "output_tokens",
    "output_tokens_mean",
    "output_tokens_total",
    "drafts",
    "drafted_tokens",
    "accepted_tokens",
)
_LEFT_TO_THE_FILE = ("itl_burst_mean_s", "itl_burst_p50_s")
"""Stored, but most medians are 0: each gap falls on its first token (suites-and-scoring 7.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    key: str
    title: str
    caption: str
    measures: tuple[Measure, ...]
    speedups: bool = False
    """Whether it holds speedups, which never stand without the quality of what was written."""


def _as(name: str, title: str, detail: str = "") -> Measure:
    return Measure(name=name, title=title, detail=detail, neutral=name in _NEUTRAL)


def _ms(name: str, title: str) -> Measure:
    return Measure(name=name, title=f"{title} (ms)", scale=1e3, unit="ms", digits=1)


def _mib(name: str, title: str) -> Measure:
    return Measure(name=name, title=f"{title} (MiB)", scale=1 / 2**20, unit="MiB", digits=0)


_SERVING = _Detail(
    key="serving",
    title="Serving",
    caption="What a server gave to many requests at once, as it or its client counted.",
    measures=(
        _as("output_tokens_per_s", "Output tokens/s"),
        _as("output_tokens_per_s_per_gpu", "Output tokens/s per GPU"),
        _as("output_tokens_per_s_max", "Output tokens/s, peak"),
        _as("total_tokens_per_s", "Total tokens/s", "prompts and output"),
        _as("user_tokens_per_s", "User tokens/s, median"),
        _as("user_tokens_per_s_mean", "User tokens/s, mean"),
        _as("user_tokens_per_s_p5", "User tokens/s, p5"),
        _as("requests_per_s", "Requests/s"),
        _as("goodput_requests_per_s", "Goodput", "requests/s within their targets"),
        _as("output_tokens", "Output tokens, median"),
        _as("output_tokens_mean", "Output tokens, mean"),
        _as("output_tokens_total", "Output tokens, total"),
        _as("drafts", "Drafts"),
        _as("drafted_tokens", "Drafted tokens"),
        _as("accepted_tokens", "Accepted tokens"),
    ),
)
_DETAILS = (
    _Detail(
        key="acceptance-names",
        title="Acceptance, by every name",
        caption="One trace, counted as different tools and papers count. Values compare only under the same name.",
        measures=(
            _as("acceptance_length", "τ, kept", "what users get per step; draftboard's headline"),
            _as("acceptance_length_mean_of_samples", "τ, mean of samples", "every sample equal"),
            _as("acceptance_length_raw", "τ, raw", "τ of most papers; SGLang's accept length"),
            _as("accepted_per_step", "Accepted drafts per step", "without the bonus; TSS's text"),
            _as("accepted_per_step_raw", "Accepted drafts per step, raw", "the same before the cut"),
            _as("block_efficiency", "Block efficiency", "Leviathan et al.; prefill not counted"),
            _as("tokens_per_target_pass", "Tokens per target pass", "block efficiency with the prefill counted"),
            _as("spec_bench_mean_accepted", "Mean accepted tokens", "Spec-Bench's leaderboards; TSS's tables"),
            _as("specdec_bench_al", "AL", "specdec_bench; SPEED-Bench's tables"),
            _as("vllm_acceptance_length", "Acceptance length, drafting steps only", "vLLM's mean acceptance length"),
            _as("acceptance_rate", "α", "along the longest path; T2D, SWIFT"),
            _as("acceptance_rate_mean_of_samples", "α, mean of samples", "every sample equal"),
            _as("acceptance_rate_raw", "α, raw", "vLLM's acceptance rate, there in %"),
            _as("acceptance_rate_nodes", "α, all nodes", "over every drafted node of a tree"),
            _as("nodes_per_step", "Drafted nodes per step", "all branches"),
        ),
    ),
    _Detail(
        key="speedups",
        title="Speedup, by every definition",
        caption="The same times and tokens over the baseline's, put together in different ways. The first one ranks.",
        speedups=True,
        measures=(
            _as("speedup", "Speedup", "S_pool per domain, geometric mean over domains"),
            _as("speedup_pooled", "Pooled", "S_pool over all samples at once"),
            _as("speedup_mean_of_domains", "Plain mean of domains", "every domain equal"),
            _as("speedup_sample_weighted", "Sample-weighted mean of domains", "by paired samples"),
            _as("speedup_decode", "Decode only", "prefill left out on both sides"),
            _as("speedup_decode_pooled", "Decode only, pooled", "over all samples at once"),
            _as("speedup_cpu", "CPU time", "S_pool on process CPU time"),
            _as("speedup_time", "S_time", "total times; rewards shorter answers"),
            _as("speedup_gm", "S_gm", "geometric mean over samples; every sample equal"),
            _as("speedup_mor", "S_mor", "mean of ratios; noise raises it"),
            _as("speedup_rom", "S_rom", "ratio of mean rates, counted alike on both sides"),
            _as("speedup_specbench", "S_specbench", "speed.py's own counting; compatibility only"),
            _as("noise_floor", "Noise floor", "between rounds of one arm, in log scale; widens the intervals"),
        ),
    ),
    _Detail(
        key="rates",
        title="Tokens per second, by every definition",
        caption="Rates of each method alone, without the baseline; prefill in prompt tokens.",
        measures=(
            _as("tokens_per_s", "Tokens/s", "end to end, totals over totals"),
            _as("decode_tokens_per_s", "Decode tokens/s", "after the first emission"),
            _as("prefill_tokens_per_s", "Prefill tokens/s", "prompt tokens"),
            _as("tokens_per_s_mean_of_samples", "Tokens/s, mean of samples", "every sample equal"),
            _as("tokens_per_s_specbench", "Tokens/s, speed.py", "Spec-Bench's counting"),
        ),
    ),
    _Detail(
        key="latency",
        title="Latency",
        caption="What a reader of the stream waits for. Tokens come in blocks: a step gap is the wait for a block, "
        "uniform ITL spreads it over the block's tokens. vLLM's mean ITL is the mean step gap.",
        measures=(
            _ms("ttft_s", "TTFT, median"),
            _ms("ttft_mean_s", "TTFT, mean"),
            _ms("ttft_p90_s", "TTFT, p90"),
            _ms("ttft_p95_s", "TTFT, p95"),
            _ms("ttft_p99_s", "TTFT, p99"),
            _ms("ttft_answer_s", "Time to first answer text"),
            _ms("tpot_s", "TPOT"),
            _ms("tpot_mean_s", "TPOT, mean of requests"),
            _ms("tpot_p50_s", "TPOT, median of requests"),
            _ms("tpot_p90_s", "TPOT, p90 of requests"),
            _ms("tpot_p95_s", "TPOT, p95 of requests"),
            _ms("tpot_p99_s", "TPOT, p99 of requests"),
            _ms("step_gap_mean_s", "Step gap, mean"),
            _ms("step_gap_p50_s", "Step gap, median"),
            _ms("step_gap_p90_s", "Step gap, p90"),
            _ms("step_gap_p95_s", "Step gap, p95"),
            _ms("step_gap_p99_s", "Step gap, p99"),
            _ms("step_gap_max_s", "Step gap, longest"),
            _ms("itl_uniform_mean_s", "Uniform ITL, mean"),
            _ms("itl_uniform_p50_s", "Uniform ITL, median"),
            _ms("itl_uniform_p95_s", "Uniform ITL, p95"),
            _ms("itl_uniform_p99_s", "Uniform ITL, p99"),
            _ms("e2e_s", "Request, median"),
            _ms("e2e_mean_s", "Request, mean"),
            _ms("e2e_p90_s", "Request, p90"),
            _ms("e2e_p95_s", "Request, p95"),
            _ms("e2e_p99_s", "Request, p99"),
        ),
    ),
    _Detail(
        key="time",
        title="Where the time goes",
        caption="Mean milliseconds of a step, and what they predict: acceptance length times the baseline's time per "
        "token over the step's time. A ceiling is the prediction with one part free of charge. Everything here is "
        "pooled over all samples, the measured decode speedup too: the one of the ranking is a mean over domains.",
        speedups=True,
        measures=(
            _as("step_ms", "Step (ms)", "all of it"),
            _as("draft_ms", "Draft (ms)"),
            _as("verify_ms", "Verify (ms)"),
            _as("other_ms", "Other (ms)", "accepting, cache moves, the loop"),
            _as("draft_share", "Draft share"),
            _as("verify_share", "Verify share"),
            _as("other_share", "Other share"),
            _as("predicted_decode_speedup", "Decode speedup, predicted", "pooled"),
            _as("speedup_decode_pooled", "Decode speedup, measured", "pooled"),
            _as("ceiling_no_draft", "Ceiling, drafts free"),
            _as("ceiling_no_overhead", "Ceiling, other free"),
            _as("relative_draft_cost", "Relative draft cost c", "of one drafted token, over a baseline token"),
            _as("relative_verify_cost", "Relative verify cost v", "of a step, over a baseline token"),
            _as("forecast_decode", "Forecast from the cost curve", "no drafting cost, no overhead"),
        ),
    ),
    _Detail(
        key="resources",
        title="Memory and energy",
        caption="Peaks while the method ran; energy of the whole machine or device as its counters tell.",
        measures=(
            _mib("peak_rss_bytes", "Peak RSS"),
            _mib("peak_rss_over_baseline_bytes", "Peak RSS over the baseline"),
            _mib("peak_device_bytes", "Peak device memory"),
            _mib("peak_device_over_baseline_bytes", "Peak device memory over the baseline"),
            _as("energy_j_per_token", "Energy per token (J)"),
            _as("mean_power_w", "Mean power (W)"),
        ),
    ),
)


def serving_table(group: Group) -> Table | None:
    """Return what servers gave, for results that were measured at one; None for all others."""
    order = standings(group, headline(group))
    return _table(_SERVING, group, order, level="main") if _says_more(_SERVING, order) else None


def detail_tables(group: Group, shown: Collection[str]) -> Iterator[Table]:
    """Yield the detail tables that say more than the board does, where the metrics `shown` stand already."""
    order = standings(group, headline(group))
    for detail in (*_DETAILS, _further(order)):
        if _says_more(detail, order, shown):
            table = _table(detail, group, order, level="detail")
            if table is not None:
                yield table


def _further(order: Sequence[Standing]) -> _Detail:
    """Return whatever else the methods have overall, such as a plug-in's own figures."""
    known = {measure.name for detail in (_SERVING, *_DETAILS) for measure in detail.measures}
    names = dict.fromkeys(name for standing in order for name in standing.method.overall)
    measures = tuple(
        Measure(name=name, title=_with_unit(metric(name)))
        for name in names
        if name not in known and name not in _LEFT_TO_THE_FILE
    )
    return _Detail(key="further", title="Further figures", caption="Over all domains.", measures=measures)


def _with_unit(kind: Metric) -> str:
    return f"{kind.title} ({kind.unit})" if kind.unit not in ("", "×") else kind.title


def _says_more(detail: _Detail, order: Sequence[Standing], shown: Collection[str] = ()) -> bool:
    names = [measure.name for measure in detail.measures if measure.name not in shown]
    return any(usable(standing.method.overall.get(name)) is not None for standing in order for name in names)


def _table(detail: _Detail, group: Group, order: Sequence[Standing], *, level: Level) -> Table | None:
    notes = Footnotes()
    lines = lines_of(order, detail.measures, notes)
    table = Table(
        key=detail.key, title=detail.title, caption=detail.caption, columns=(), rows=(), ranked=False, level=level
    )
    qualities = [quality_note(standing.method, group) for standing in order] if detail.speedups else ()
    built = assemble(table, group, order, lines, notes, qualities=qualities)
    return None if built is None else oriented(built)
