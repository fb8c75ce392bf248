"""The names of all figures: title, unit, direction and digits. One table, so that no two pages say it differently."""

from dataclasses import dataclass

__all__ = ["METRICS", "Metric", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How one figure is named and shown; its definition is in `docs/metrics.md`."""

    name: str
    title: str
    kind: str
    """`speed`, `acceptance`, `time` (where a step's time goes) or `quality`."""
    unit: str = ""
    digits: int = 2
    higher_is_better: bool = True
    about: str = ""


_ALL = (
    Metric(
        name="speedup",
        title="Speedup",
        kind="speed",
        unit="×",
        about="S_pool, end to end: baseline seconds per kept token over the method's, totals over totals",
    ),
    Metric(
        name="speedup_decode",
        title="Decode speedup",
        kind="speed",
        unit="×",
        about="S_pool with decode-only times: prefill left out on both sides",
    ),
    Metric(
        name="speedup_cpu",
        title="CPU-time speedup",
        kind="speed",
        unit="×",
        about="S_pool on process CPU time: steadier than the wall clock on a shared machine",
    ),
    Metric(
        name="acceptance_length",
        title="Acceptance length τ",
        kind="acceptance",
        about="tokens kept per step, pooled over steps; autoregressive decoding is 1.00",
    ),
    Metric(
        name="acceptance_length_mean_of_samples",
        title="τ, mean of per-sample values",
        kind="acceptance",
        about="acceptance length averaged over samples, every sample equal",
    ),
    Metric(
        name="acceptance_rate",
        title="Acceptance rate α",
        kind="acceptance",
        about="accepted over drafted (longest drafted path), pooled over steps",
    ),
    Metric(
        name="tokens_per_target_pass",
        title="Tokens per target pass",
        kind="acceptance",
        about="all output tokens over steps plus prefill passes (block efficiency with prefill)",
    ),
    Metric(
        name="tokens_per_s",
        title="Tokens/s",
        kind="speed",
        unit="tok/s",
        digits=1,
        about="kept tokens over end-to-end seconds, totals over totals",
    ),
    Metric(
        name="decode_tokens_per_s",
        title="Decode tokens/s",
        kind="speed",
        unit="tok/s",
        digits=1,
        about="kept tokens after the first emission over the seconds after it",
    ),
    Metric(
        name="tokens_per_s_mean_of_samples",
        title="Tokens/s, mean of samples",
        kind="speed",
        unit="tok/s",
        digits=1,
        about="per-sample tokens/s averaged over samples (Spec-Bench's average)",
    ),
    Metric(
        name="ttft_s",
        title="TTFT",
        kind="speed",
        unit="s",
        digits=3,
        higher_is_better=False,
        about="time to first token, median over turns",
    ),
    Metric(
        name="speedup_pooled",
        title="Speedup, pooled",
        kind="speed",
        unit="×",
        about="S_pool over all samples of all domains at once; long answers weigh more",
    ),
    Metric(
        name="speedup_mean_of_domains",
        title="Mean of domain speedups",
        kind="speed",
        unit="×",
        about="arithmetic mean of the domains' speedups, the form of Spec-Bench's tables",
    ),
    Metric(
        name="forecast_decode",
        title="Forecast decode speedup",
        kind="speed",
        unit="×",
        about="kept tokens over the cost curve's price of their forwards: no drafting cost, no overhead",
    ),
    Metric(
        name="nodes_per_step",
        title="Drafted nodes per step",
        kind="acceptance",
        digits=1,
        about="drafted tokens verified in a step, all branches counted",
    ),
    Metric(
        name="draft_share",
        title="Draft share of step time",
        kind="time",
        digits=3,
        higher_is_better=False,
        about="drafting over the whole step, pooled over steps, 0-1",
    ),
    Metric(
        name="verify_share",
        title="Verify share of step time",
        kind="time",
        digits=3,
        about="the target's forward over the whole step, 0-1",
    ),
    Metric(
        name="other_share",
        title="Other share of step time",
        kind="time",
        digits=3,
        higher_is_better=False,
        about="judging, cache moves and the loop itself over the whole step, 0-1",
    ),
    Metric(name="bleu", title="BLEU", kind="quality", digits=1, about="sacrebleu corpus BLEU, 0-100"),
    Metric(name="chrf", title="chrF", kind="quality", digits=1, about="sacrebleu corpus chrF2, 0-100"),
    Metric(name="rouge1", title="ROUGE-1", kind="quality", digits=1, about="F1, mean over samples, 0-100"),
    Metric(name="rouge2", title="ROUGE-2", kind="quality", digits=1, about="F1, mean over samples, 0-100"),
    Metric(name="rougeL", title="ROUGE-L", kind="quality", digits=1, about="F1, mean over samples, 0-100"),
    Metric(name="rougeLsum", title="ROUGE-Lsum", kind="quality", digits=1, about="F1, mean over samples, 0-100"),
    Metric(name="accuracy", title="Accuracy", kind="quality", digits=3, about="right final answers, 0-1"),
    Metric(name="em", title="Exact match", kind="quality", digits=3, about="normalised equality, 0-1"),
    Metric(name="f1", title="Token F1", kind="quality", digits=1, about="bag-of-token F1, best alias, 0-100"),
    Metric(name="contains", title="Contains", kind="quality", digits=3, about="an alias occurs in the answer, 0-1"),
)

METRICS: dict[str, Metric] = {m.name: m for m in _ALL}


def metric(name: str) -> Metric:
    """Return the metric of that name; an unknown one (from a plug-in) is shown under its own name."""
    return METRICS.get(name) or Metric(name=name, title=name, kind="quality")
