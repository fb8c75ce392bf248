"""The names of figures of time and machine: speedups, rates, latencies, parts of a step, memory, energy."""

from draftboard.metric_kinds import of_kind

__all__ = ["LATENCIES", "MACHINE", "RATES", "SPEEDUPS", "TIME"]

SPEEDUPS = (
    of_kind(
        "speed",
        "speedup",
        "Speedup",
        "S_pool, end to end: baseline seconds per kept token over the method's, totals over totals",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_decode",
        "Decode speedup",
        "S_pool with decode-only times: prefill left out on both sides",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_cpu",
        "CPU-time speedup",
        "S_pool on process CPU time: steadier than the wall clock on a shared machine",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_pooled",
        "Speedup, pooled",
        "S_pool over all samples of all domains at once; long answers weigh more",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_decode_pooled",
        "Decode speedup, pooled",
        "the decode speedup over all samples of all domains at once, as the predicted one is",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_mean_of_domains",
        "Mean of domain speedups",
        "arithmetic mean of the domains' speedups, the form of Spec-Bench's tables",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_sample_weighted",
        "Sample-weighted mean of domain speedups",
        "mean of the domains' speedups, each weighted by its paired samples",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_time",
        "Total-time speedup",
        "S_time: baseline seconds over the method's; rewards shorter answers where lengths differ",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_gm",
        "Geometric mean of sample speedups",
        "S_gm: every sample equal; swapping the arms inverts it",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_mor",
        "Mean of sample speedups",
        "S_mor: arithmetic mean of per-sample ratios; noise biases it upwards",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_rom",
        "Ratio of mean tokens/s",
        "S_rom: mean of the samples' tokens/s over the baseline's mean",
        "×",
    ),
    of_kind(
        "speed",
        "speedup_specbench",
        "Speedup, speed.py-compatible",
        "Spec-Bench's script: its baseline counts re-tokenised text, rows are not matched",
        "×",
    ),
    of_kind(
        "speed",
        "noise_floor",
        "Noise floor",
        "largest |ln S_pool| between two rounds of one arm; speedup intervals are widened by it",
        digits=4,
        up=False,
    ),
    of_kind(
        "speed",
        "forecast_decode",
        "Forecast decode speedup",
        "kept tokens over the cost curve's price of their forwards: no drafting cost, no overhead",
        "×",
    ),
)

RATES = (
    of_kind("speed", "tokens_per_s", "Tokens/s", "kept tokens over end-to-end seconds, totals over totals", "tok/s", 1),
    of_kind(
        "speed",
        "decode_tokens_per_s",
        "Decode tokens/s",
        "kept tokens after the first emission over the seconds after it",
        "tok/s",
        1,
    ),
    of_kind("speed", "prefill_tokens_per_s", "Prefill tokens/s", "prompt tokens over prefill seconds", "tok/s", 1),
    of_kind(
        "speed",
        "tokens_per_s_mean_of_samples",
        "Tokens/s, mean of samples",
        "per-sample tokens/s averaged over samples",
        "tok/s",
        1,
    ),
    of_kind(
        "speed",
        "tokens_per_s_specbench",
        "Tokens/s, speed.py-compatible",
        "mean over rows of new tokens over seconds, as Spec-Bench's script counts a method",
        "tok/s",
        1,
    ),
)

LATENCIES = (
    of_kind("speed", "ttft_s", "TTFT", "time to first token, median over turns", "s", 3, up=False),
    of_kind("speed", "ttft_p90_s", "TTFT, p90", "time to first token, 90th percentile over turns", "s", 3, up=False),
    of_kind("speed", "ttft_p99_s", "TTFT, p99", "time to first token, 99th percentile over turns", "s", 3, up=False),
    of_kind(
        "speed",
        "tpot_s",
        "Time per output token",
        "seconds after the first emission over the tokens after it",
        "s",
        4,
        up=False,
    ),
    of_kind(
        "speed", "step_gap_p50_s", "Step gap, median", "time between emissions, however many tokens", "s", 4, up=False
    ),
    of_kind(
        "speed", "step_gap_p95_s", "Step gap, p95", "95th percentile of the time between emissions", "s", 4, up=False
    ),
    of_kind(
        "speed", "step_gap_p99_s", "Step gap, p99", "99th percentile of the time between emissions", "s", 4, up=False
    ),
    of_kind("speed", "step_gap_max_s", "Step gap, longest", "longest time between emissions", "s", 4, up=False),
    of_kind(
        "speed",
        "itl_uniform_mean_s",
        "Uniform ITL, mean",
        "inter-token latency with each gap shared equally by its tokens",
        "s",
        4,
        up=False,
    ),
    of_kind(
        "speed", "itl_uniform_p50_s", "Uniform ITL, median", "median of the uniform ITL over tokens", "s", 4, up=False
    ),
    of_kind("speed", "itl_uniform_p95_s", "Uniform ITL, p95", "95th percentile of the uniform ITL", "s", 4, up=False),
    of_kind("speed", "itl_uniform_p99_s", "Uniform ITL, p99", "99th percentile of the uniform ITL", "s", 4, up=False),
    of_kind(
        "speed",
        "itl_burst_mean_s",
        "Burst ITL, mean",
        "inter-token latency with each gap on its first token, 0 on the others",
        "s",
        4,
        up=False,
    ),
    of_kind("speed", "itl_burst_p50_s", "Burst ITL, median", "median of the burst ITL over tokens", "s", 4, up=False),
)

TIME = (
    of_kind(
        "time",
        "step_ms",
        "Time per step",
        "time of drafting, the target's forward and the rest, mean per step",
        "ms",
        up=False,
    ),
    of_kind("time", "draft_ms", "Draft time per step", "time of drafting, mean per step", "ms", up=False),
    of_kind("time", "verify_ms", "Verify time per step", "time of the target's forward, mean per step", "ms", up=False),
    of_kind(
        "time",
        "other_ms",
        "Other time per step",
        "time of judging, cache moves and the loop, mean per step",
        "ms",
        up=False,
    ),
    of_kind(
        "time",
        "draft_share",
        "Draft share of step time",
        "time of drafting over that of the whole step, pooled over steps, 0-1",
        digits=3,
        up=False,
    ),
    of_kind(
        "time",
        "verify_share",
        "Verify share of step time",
        "time of the target's forward over that of the whole step, 0-1",
        digits=3,
    ),
    of_kind(
        "time",
        "other_share",
        "Other share of step time",
        "time of judging, cache moves and the loop over that of the whole step, 0-1",
        digits=3,
        up=False,
    ),
    of_kind(
        "time",
        "predicted_decode_speedup",
        "Predicted decode speedup",
        "τ times the baseline's step over the method's, pooled; should agree with the pooled decode speedup",
        "×",
    ),
    of_kind("time", "ceiling_no_draft", "Ceiling without drafting", "predicted speedup if drafts cost no time", "×"),
    of_kind(
        "time",
        "ceiling_no_overhead",
        "Ceiling without overhead",
        "predicted speedup if judging, cache moves and the loop cost no time",
        "×",
    ),
    of_kind(
        "time",
        "relative_draft_cost",
        "Relative draft cost c",
        "time to draft one token of the path over the baseline's time per token",
        digits=3,
        up=False,
    ),
    of_kind(
        "time",
        "relative_verify_cost",
        "Relative verify cost v",
        "time to verify a step over the baseline's time per token",
        up=False,
    ),
)

MACHINE = (
    of_kind("machine", "peak_rss_bytes", "Peak memory", "largest resident set while a cell ran", "bytes", 0, up=False),
    of_kind(
        "machine",
        "peak_rss_over_baseline_bytes",
        "Peak memory over the baseline",
        "peak memory less the baseline's",
        "bytes",
        0,
        up=False,
    ),
    of_kind(
        "machine",
        "peak_device_bytes",
        "Peak device memory",
        "largest allocation on the target's device while a cell ran",
        "bytes",
        0,
        up=False,
    ),
    of_kind(
        "machine",
        "peak_device_over_baseline_bytes",
        "Peak device memory over the baseline",
        "peak device memory less the baseline's",
        "bytes",
        0,
        up=False,
    ),
    of_kind(
        "machine",
        "energy_j_per_token",
        "Energy per token",
        "energy by the machine's counter during the cells over their tokens",
        "J",
        up=False,
    ),
    of_kind(
        "machine",
        "mean_power_w",
        "Mean power",
        "energy by the machine's counter during the cells over their seconds",
        "W",
        1,
        up=False,
    ),
)
