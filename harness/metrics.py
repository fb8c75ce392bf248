"""The names of all figures: title, unit, direction and digits. One table, so that no two pages say it differently."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

__all__ = ["METRICS", "Metric", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How one figure is named and shown; its definition is in `docs/metrics.md`."""

    name: str
    title: str
    kind: str
    """`speed`, `acceptance`, `time` (where a step's time goes), `machine` (memory and energy), `serving` (aggregates of
    other tools), `quality` or `quality_detail` (needed to read a quality figure, no headline itself)."""
    unit: str = ""
    digits: int = 2
    higher_is_better: bool = True
    about: str = ""
    """What the number is, in a phrase that stands alone: what is counted or measured, over what, on which scale."""


def _of(kind: str, name: str, title: str, about: str, unit: str = "", digits: int = 2, *, up: bool = True) -> Metric:
    return Metric(kind=kind, name=name, title=title, about=about, unit=unit, digits=digits, higher_is_better=up)


_SPEEDUPS = (
    _of(
        "speed",
        "speedup",
        "Speedup",
        "S_pool, end to end: baseline seconds per kept token over the method's, totals over totals",
        "×",
    ),
    _of(
        "speed",
        "speedup_decode",
        "Decode speedup",
        "S_pool with decode-only times: prefill left out on both sides",
        "×",
    ),
    _of(
        "speed",
        "speedup_cpu",
        "CPU-time speedup",
        "S_pool on process CPU time: steadier than the wall clock on a shared machine",
        "×",
    ),
    _of(
        "speed",
        "speedup_pooled",
        "Speedup, pooled",
        "S_pool over all samples of all domains at once; long answers weigh more",
        "×",
    ),
    _of(
        "speed",
        "speedup_decode_pooled",
        "Decode speedup, pooled",
        "the decode speedup over all samples of all domains at once, as the predicted one is",
        "×",
    ),
    _of(
        "speed",
        "speedup_mean_of_domains",
        "Mean of domain speedups",
        "arithmetic mean of the domains' speedups, the form of Spec-Bench's tables",
        "×",
    ),
    _of(
        "speed",
        "speedup_sample_weighted",
        "Sample-weighted mean of domain speedups",
        "mean of the domains' speedups, each weighted by its paired samples",
        "×",
    ),
    _of(
        "speed",
        "speedup_time",
        "Total-time speedup",
        "S_time: baseline seconds over the method's; rewards shorter answers where lengths differ",
        "×",
    ),
    _of(
        "speed",
        "speedup_gm",
        "Geometric mean of sample speedups",
        "S_gm: every sample equal; swapping the arms inverts it",
        "×",
    ),
    _of(
        "speed",
        "speedup_mor",
        "Mean of sample speedups",
        "S_mor: arithmetic mean of per-sample ratios; noise biases it upwards",
        "×",
    ),
    _of(
        "speed",
        "speedup_rom",
        "Ratio of mean tokens/s",
        "S_rom: mean of the samples' tokens/s over the baseline's mean",
        "×",
    ),
    _of(
        "speed",
        "speedup_specbench",
        "Speedup, speed.py-compatible",
        "Spec-Bench's script: its baseline counts re-tokenised text, rows are not matched",
        "×",
    ),
    _of(
        "speed",
        "noise_floor",
        "Noise floor",
        "largest |ln S_pool| between two rounds of one arm; speedup intervals are widened by it",
        digits=4,
        up=False,
    ),
    _of(
        "speed",
        "forecast_decode",
        "Forecast decode speedup",
        "kept tokens over the cost curve's price of their forwards: no drafting cost, no overhead",
        "×",
    ),
)

_RATES = (
    _of("speed", "tokens_per_s", "Tokens/s", "kept tokens over end-to-end seconds, totals over totals", "tok/s", 1),
    _of(
        "speed",
        "decode_tokens_per_s",
        "Decode tokens/s",
        "kept tokens after the first emission over the seconds after it",
        "tok/s",
        1,
    ),
    _of("speed", "prefill_tokens_per_s", "Prefill tokens/s", "prompt tokens over prefill seconds", "tok/s", 1),
    _of(
        "speed",
        "tokens_per_s_mean_of_samples",
        "Tokens/s, mean of samples",
        "per-sample tokens/s averaged over samples",
        "tok/s",
        1,
    ),
    _of(
        "speed",
        "tokens_per_s_specbench",
        "Tokens/s, speed.py-compatible",
        "mean over rows of new tokens over seconds, as Spec-Bench's script counts a method",
        "tok/s",
        1,
    ),
)

_LATENCIES = (
    _of("speed", "ttft_s", "TTFT", "time to first token, median over turns", "s", 3, up=False),
    _of("speed", "ttft_p90_s", "TTFT, p90", "time to first token, 90th percentile over turns", "s", 3, up=False),
    _of("speed", "ttft_p99_s", "TTFT, p99", "time to first token, 99th percentile over turns", "s", 3, up=False),
    _of(
        "speed",
        "tpot_s",
        "Time per output token",
        "seconds after the first emission over the tokens after it",
        "s",
        4,
        up=False,
    ),
    _of("speed", "step_gap_p50_s", "Step gap, median", "time between emissions, however many tokens", "s", 4, up=False),
    _of("speed", "step_gap_p95_s", "Step gap, p95", "95th percentile of the time between emissions", "s", 4, up=False),
    _of("speed", "step_gap_p99_s", "Step gap, p99", "99th percentile of the time between emissions", "s", 4, up=False),
    _of("speed", "step_gap_max_s", "Step gap, longest", "longest time between emissions", "s", 4, up=False),
    _of(
        "speed",
        "itl_uniform_mean_s",
        "Uniform ITL, mean",
        "inter-token latency with each gap shared equally by its tokens",
        "s",
        4,
        up=False,
    ),
    _of("speed", "itl_uniform_p50_s", "Uniform ITL, median", "median of the uniform ITL over tokens", "s", 4, up=False),
    _of("speed", "itl_uniform_p95_s", "Uniform ITL, p95", "95th percentile of the uniform ITL", "s", 4, up=False),
    _of("speed", "itl_uniform_p99_s", "Uniform ITL, p99", "99th percentile of the uniform ITL", "s", 4, up=False),
    _of(
        "speed",
        "itl_burst_mean_s",
        "Burst ITL, mean",
        "inter-token latency with each gap on its first token, 0 on the others",
        "s",
        4,
        up=False,
    ),
    _of("speed", "itl_burst_p50_s", "Burst ITL, median", "median of the burst ITL over tokens", "s", 4, up=False),
)

_ACCEPTANCE = (
    _of(
        "acceptance",
        "acceptance_length",
        "Acceptance length τ",
        "tokens kept per step, pooled over steps; autoregressive decoding is 1.00",
    ),
    _of(
        "acceptance",
        "acceptance_length_raw",
        "τ before the cut",
        "1 + accepted drafts per step, what end or limit cut away included",
    ),
    _of(
        "acceptance",
        "acceptance_length_mean_of_samples",
        "τ, mean of per-sample values",
        "acceptance length averaged over samples, every sample equal",
    ),
    _of(
        "acceptance",
        "accepted_per_step",
        "Accepted drafts per step",
        "accepted draft tokens that were kept, per step; the bonus not counted",
    ),
    _of(
        "acceptance",
        "accepted_per_step_raw",
        "Accepted drafts per step before the cut",
        "accepted draft tokens per step, what was cut away included",
    ),
    _of(
        "acceptance",
        "block_efficiency",
        "Block efficiency",
        "output tokens that the prefill did not give, over the target's forwards after it",
    ),
    _of(
        "acceptance",
        "tokens_per_target_pass",
        "Tokens per target pass",
        "all output tokens over steps plus prefill passes (block efficiency with prefill)",
    ),
    _of(
        "acceptance",
        "spec_bench_mean_accepted",
        "Mean accepted tokens (Spec-Bench)",
        "mean entry of accept_lengths as exported: the prefill's token an entry, the bonus counted",
    ),
    _of(
        "acceptance",
        "specdec_bench_al",
        "AL (specdec_bench)",
        "mean over requests of their mean chunk; the prefill a chunk, a closing end token removed",
    ),
    _of(
        "acceptance",
        "vllm_acceptance_length",
        "Mean acceptance length (vLLM)",
        "1 + accepted over drafts, steps without a draft left out",
    ),
    _of(
        "acceptance",
        "acceptance_rate",
        "Acceptance rate α",
        "accepted over drafted (longest drafted path), pooled over steps",
    ),
    _of(
        "acceptance",
        "acceptance_rate_raw",
        "α before the cut",
        "accepted over drafted, what end or limit cut away counted as accepted",
    ),
    _of(
        "acceptance",
        "acceptance_rate_nodes",
        "Acceptance rate over nodes",
        "accepted over all drafted nodes, branches included",
    ),
    _of(
        "acceptance",
        "acceptance_rate_mean_of_samples",
        "α, mean of per-sample values",
        "acceptance rate averaged over samples that drafted",
    ),
    _of(
        "acceptance",
        "nodes_per_step",
        "Drafted nodes per step",
        "drafted tokens verified in a step, all branches counted",
        digits=1,
    ),
)

_TIME = (
    _of(
        "time",
        "step_ms",
        "Time per step",
        "time of drafting, the target's forward and the rest, mean per step",
        "ms",
        up=False,
    ),
    _of("time", "draft_ms", "Draft time per step", "time of drafting, mean per step", "ms", up=False),
    _of("time", "verify_ms", "Verify time per step", "time of the target's forward, mean per step", "ms", up=False),
    _of(
        "time",
        "other_ms",
        "Other time per step",
        "time of judging, cache moves and the loop, mean per step",
        "ms",
        up=False,
    ),
    _of(
        "time",
        "draft_share",
        "Draft share of step time",
        "time of drafting over that of the whole step, pooled over steps, 0-1",
        digits=3,
        up=False,
    ),
    _of(
        "time",
        "verify_share",
        "Verify share of step time",
        "time of the target's forward over that of the whole step, 0-1",
        digits=3,
    ),
    _of(
        "time",
        "other_share",
        "Other share of step time",
        "time of judging, cache moves and the loop over that of the whole step, 0-1",
        digits=3,
        up=False,
    ),
    _of(
        "time",
        "predicted_decode_speedup",
        "Predicted decode speedup",
        "τ times the baseline's step over the method's, pooled; should agree with the pooled decode speedup",
        "×",
    ),
    _of("time", "ceiling_no_draft", "Ceiling without drafting", "predicted speedup if drafts cost no time", "×"),
    _of(
        "time",
        "ceiling_no_overhead",
        "Ceiling without overhead",
        "predicted speedup if judging, cache moves and the loop cost no time",
        "×",
    ),
    _of(
        "time",
        "relative_draft_cost",
        "Relative draft cost c",
        "time to draft one token of the path over the baseline's time per token",
        digits=3,
        up=False,
    ),
    _of(
        "time",
        "relative_verify_cost",
        "Relative verify cost v",
        "time to verify a step over the baseline's time per token",
        up=False,
    ),
)

_MACHINE = (
    _of("machine", "peak_rss_bytes", "Peak memory", "largest resident set while a cell ran", "bytes", 0, up=False),
    _of(
        "machine",
        "peak_rss_over_baseline_bytes",
        "Peak memory over the baseline",
        "peak memory less the baseline's",
        "bytes",
        0,
        up=False,
    ),
    _of(
        "machine",
        "peak_device_bytes",
        "Peak device memory",
        "largest allocation on the target's device while a cell ran",
        "bytes",
        0,
        up=False,
    ),
    _of(
        "machine",
        "peak_device_over_baseline_bytes",
        "Peak device memory over the baseline",
        "peak device memory less the baseline's",
        "bytes",
        0,
        up=False,
    ),
    _of(
        "machine",
        "energy_j_per_token",
        "Energy per token",
        "energy by the machine's counter during the cells over their tokens",
        "J",
        up=False,
    ),
    _of(
        "machine",
        "mean_power_w",
        "Mean power",
        "energy by the machine's counter during the cells over their seconds",
        "W",
        1,
        up=False,
    ),
)

_QUALITY = (
    _of("quality", "bleu", "BLEU", "corpus BLEU by sacrebleu, 0-100", digits=1),
    _of("quality", "chrf", "chrF", "corpus chrF2 by sacrebleu, 0-100", digits=1),
    _of("quality", "rouge1", "ROUGE-1", "ROUGE-1 F1, mean over samples, 0-100", digits=1),
    _of("quality", "rouge2", "ROUGE-2", "ROUGE-2 F1, mean over samples, 0-100", digits=1),
    _of("quality", "rougeL", "ROUGE-L", "ROUGE-L F1, mean over samples, 0-100", digits=1),
    _of("quality", "rougeLsum", "ROUGE-Lsum", "ROUGE-Lsum F1, mean over samples, 0-100", digits=1),
    _of("quality", "accuracy", "Accuracy", "share of right final answers, 0-1", digits=3),
    _of("quality", "em", "Exact match", "share of answers that equal an alias once normalised, 0-1", digits=3),
    _of("quality", "f1", "Token F1", "F1 of the bags of tokens, best alias, mean over answers, 0-100", digits=1),
    _of("quality", "contains", "Contains", "share of answers that an alias occurs in, 0-1", digits=3),
    _of("quality", "pass_at_1", "Pass@1", "share of programs that passed their tests at the first try, 0-1", digits=3),
)

_DETAILS = (
    _of("quality_detail", "bleu_clean", "BLEU, cleaned", "BLEU without a preamble or quotation marks, 0-100", digits=1),
    _of("quality_detail", "chrf_clean", "chrF, cleaned", "chrF without a preamble or quotation marks, 0-100", digits=1),
    *(
        _of("quality_detail", f"{name}_clean", f"{title}, cleaned", f"{title} without a preamble, 0-100", digits=1)
        for name, title in (
            ("rouge1", "ROUGE-1"),
            ("rouge2", "ROUGE-2"),
            ("rougeL", "ROUGE-L"),
            ("rougeLsum", "ROUGE-Lsum"),
        )
    ),
    _of(
        "quality_detail",
        "brevity_penalty",
        "Brevity penalty",
        "BLEU's factor for short answers, 1 for long ones",
        digits=3,
    ),
    _of("quality_detail", "length_ratio", "Length ratio", "tokens of the answers over the references'", digits=3),
    _of("quality_detail", "mean_words", "Mean words", "words of an answer, mean over answers", digits=1),
    _of(
        "quality_detail",
        "accuracy_macro",
        "Accuracy, mean of categories",
        "accuracy averaged over categories, 0-1",
        digits=3,
    ),
    _of(
        "quality_detail",
        "last_number",
        "Accuracy, last number",
        "share of right last numbers, `####` ignored, 0-1",
        digits=3,
    ),
    _of(
        "quality_detail",
        "hash_number",
        "Accuracy, number after ####",
        "share of right numbers after ####, else last ones, 0-1",
        digits=3,
    ),
    _of(
        "quality_detail",
        "any_number",
        "Right number anywhere",
        "share of answers with the right number in them, 0-1",
        digits=3,
    ),
    _of(
        "quality_detail",
        "unparsed_rate",
        "Unparsed answers",
        "share of answers without a readable result, 0-1",
        digits=3,
        up=False,
    ),
    _of(
        "quality_detail",
        "truncated_rate",
        "Answers cut by the limit",
        "share of answers that the limit on new tokens or the model's window cut, 0-1",
        digits=3,
        up=False,
    ),
)


def _serving() -> Iterator[Metric]:
    """Figures of other tools, which come as aggregates over requests and keep their own definitions."""
    served = partial(_of, "serving")
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

METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        *_SPEEDUPS,
        *_ACCEPTANCE,
        *_RATES,
        *_LATENCIES,
        *_TIME,
        *_MACHINE,
        *_QUALITY,
        *_DETAILS,
        *_serving(),
    )
}


_DIFFERENCE = "_difference"


def metric(name: str) -> Metric:
    """Return the metric of that name.

    `whole/part` is a detail of the metric `whole` (`bleu/zh`), shown as it is, and `whole_difference` what the method
    has of it less the baseline; an unknown name (from a plug-in) is a quality figure under its own name.
    """
    known = METRICS.get(name)
    if known is not None:
        return known
    if name.endswith(_DIFFERENCE) and name != _DIFFERENCE:
        less = metric(name.removesuffix(_DIFFERENCE))
        title, about = f"{less.title}, difference", f"less the baseline's, on the answers that both have: {less.about}"
        return replace(less, name=name, title=title, kind="quality_detail", about=about.removesuffix(": "))
    whole, slash, part = name.partition("/")
    if not slash:
        return Metric(name=name, title=name, kind="quality")
    base = METRICS.get(whole, Metric(name=whole, title=whole, kind="quality"))
    return replace(base, name=name, title=f"{base.title} ({part})", kind="quality_detail")
