"""What the target took of the drafts, under every name that the field prints (suites-and-scoring 7.2).

The same trace has many honest figures; they differ in whether the bonus, the prefill, the cut at the end and steps
without a draft count. None is printed without its name.
"""

from statistics import fmean

from draftboard.measures.columns import Listed, Turns
from draftboard.measures.estimate import of_means
from draftboard.measures.pooling import absent, mean_of_samples, noted, pooled, unrecorded
from draftboard.results import Figure
from draftboard.statistics import Coded, Floats

__all__ = ["CUT_UNKNOWN", "PREFILL_UNKNOWN", "acceptance_figures"]

PREFILL_UNKNOWN = "per entry of the imported file, which does not tell a prefill's own token from a step's"
CUT_UNKNOWN = "kept less one per step: of a step that an end cut, one too few"

_NO_STEP = "no step after the prefill"
_NO_DRAFT = "nothing was drafted"


def acceptance_figures(turns: Listed, nothing: str = "") -> dict[str, Figure]:
    """Return every acceptance figure of these turns; `nothing` is the reason where there are none."""
    t = Turns.of(turns)

    def over(top: Floats, bottom: Floats, zero: str = _NO_STEP, note: str = "") -> Figure:
        return noted(pooled(t, (top, bottom), zero=zero, nothing=nothing), note)

    def of_samples(top: Floats, bottom: Floats, zero: str, note: str = "") -> Figure:
        return noted(mean_of_samples(t, (top, bottom), zero=zero, nothing=nothing), note)

    unknown = PREFILL_UNKNOWN if t.prefill_unknown.any() else ""
    less_one = CUT_UNKNOWN if t.imported.any() else ""
    return {
        "acceptance_length": over(t.kept, t.count, note=unknown),
        "acceptance_length_raw": over(t.accepted_raw + t.count, t.count),
        "acceptance_length_mean_of_samples": of_samples(t.kept, t.count, _NO_STEP, unknown),
        "accepted_per_step": over(t.accepted, t.count, note="; ".join(filter(None, (unknown, less_one)))),
        "accepted_per_step_raw": over(t.accepted_raw, t.count),
        "block_efficiency": over(t.tokens - t.emits, t.count, note=unknown),
        "tokens_per_target_pass": over(t.tokens, _passes(t)),
        # The entries of `accept_lengths`: the prefill's token and what each step kept, zeros dropped.
        "spec_bench_mean_accepted": over(t.emits + t.kept, t.emits + t.entries, "no tokens"),
        "specdec_bench_al": _specdec_bench_al(t, nothing),
        "vllm_acceptance_length": over(t.accepted_raw + t.drafting, t.drafting, _NO_DRAFT),
        "acceptance_rate": over(t.accepted, t.drafted, _NO_DRAFT),
        "acceptance_rate_raw": over(t.accepted_raw, t.drafted, _NO_DRAFT),
        "acceptance_rate_nodes": over(t.accepted, t.nodes, _NO_DRAFT),
        "acceptance_rate_mean_of_samples": of_samples(t.accepted, t.drafted, _NO_DRAFT),
        "nodes_per_step": over(t.nodes, t.count),
    }


def _passes(turns: Turns) -> Floats:
    """Return the target's forwards: one a step, and the prefill."""
    import numpy as np

    return np.where(turns.prefill_unknown, np.nan, turns.count + 1)


def _specdec_bench_al(turns: Turns, nothing: str) -> Figure:
    """Mean over samples (of the mean over rounds) of the mean chunk length of all turns of one request."""
    import numpy as np

    tokens, chunks = _chunks(turns)
    width = int(turns.repeat.max(initial=0)) + 1
    requests, request = np.unique(turns.sample * width + turns.repeat, return_inverse=True)
    tokens_of, chunks_of = np.bincount(request, tokens), np.bincount(request, chunks)
    some = np.flatnonzero(chunks_of > 0)
    if len(some):
        samples, rounds = np.unique(requests[some] // width, return_inverse=True)
        means = np.bincount(rounds, tokens_of[some] / chunks_of[some]) / np.bincount(rounds)
        return of_means(fmean(means.tolist()), Coded(turns.names, samples), means)
    recorded = not np.isnan(chunks).all()
    return absent("no chunk besides end tokens" if recorded else unrecorded(turns, nothing))


def _chunks(turns: Turns) -> tuple[Floats, Floats]:
    """Tokens and number of the chunks of a turn, a closing end-of-sequence id removed; NaN where that is not known."""
    import numpy as np

    steps = turns.steps
    last = turns.emits.copy()
    some = steps.kept != 0
    # Of several assignments to one place the last one stands.
    last[steps.owners[some]] = steps.kept[some]
    ended = turns.ended & (last != 0)
    known = turns.stepped & ~turns.imported
    chunks = (turns.emits != 0) + turns.entries - (ended & (last == 1))
    return np.where(known, turns.emits + turns.kept - ended, np.nan), np.where(known, chunks, np.nan)
