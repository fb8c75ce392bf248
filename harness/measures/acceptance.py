"""What the target took of the drafts, under every name that the field prints (suites-and-scoring 7.2).

The same trace has many honest figures; they differ in whether the bonus, the prefill, the cut at the end and steps
without a draft count. None is printed without its name.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

from draftboard.measures.estimate import of_means
from draftboard.measures.pooling import Read, absent, mean_of_samples, noted, pooled, unrecorded
from draftboard.measures.turns import StepSums, TurnFacts, by_sample
from draftboard.results import Figure

__all__ = ["CUT_UNKNOWN", "PREFILL_UNKNOWN", "acceptance_figures"]

PREFILL_UNKNOWN = "per entry of the imported file, which does not tell a prefill's own token from a step's"
CUT_UNKNOWN = "kept less one per step: of a step that an end cut, one too few"

_NO_STEP = "no step after the prefill"
_NO_DRAFT = "nothing was drafted"


def acceptance_figures(turns: Sequence[TurnFacts], nothing: str = "") -> dict[str, Figure]:
    """Return every acceptance figure of these turns; `nothing` is the reason where there are none."""

    def of_steps(read: Callable[[StepSums], tuple[float | None, float | None]], zero: str) -> Figure:
        return pooled(turns, _steps(read), zero=zero, nothing=nothing)

    length = _steps(lambda s: (s.kept, s.count))
    rate = _steps(lambda s: (s.accepted, s.drafted))
    unknown = PREFILL_UNKNOWN if any(_prefill_unknown(turn) for turn in turns) else ""
    less_one = CUT_UNKNOWN if any(turn.imported for turn in turns) else ""
    figures = {
        "acceptance_length": noted(pooled(turns, length, zero=_NO_STEP, nothing=nothing), unknown),
        "acceptance_length_raw": of_steps(lambda s: (_plus(s.accepted_raw, s.count), s.count), _NO_STEP),
        "acceptance_length_mean_of_samples": noted(
            mean_of_samples(turns, length, zero=_NO_STEP, nothing=nothing), unknown
        ),
        "accepted_per_step": noted(
            of_steps(lambda s: (s.accepted, s.count), _NO_STEP), "; ".join(filter(None, (unknown, less_one)))
        ),
        "accepted_per_step_raw": of_steps(lambda s: (s.accepted_raw, s.count), _NO_STEP),
        "block_efficiency": noted(pooled(turns, _block_efficiency, zero=_NO_STEP, nothing=nothing), unknown),
        "tokens_per_target_pass": pooled(turns, _per_pass, zero=_NO_STEP, nothing=nothing),
        "spec_bench_mean_accepted": pooled(turns, _entries, zero="no tokens", nothing=nothing),
        "specdec_bench_al": _specdec_bench_al(turns, nothing),
        "vllm_acceptance_length": of_steps(lambda s: (_plus(s.accepted_raw, s.drafting), s.drafting), _NO_DRAFT),
        "acceptance_rate": pooled(turns, rate, zero=_NO_DRAFT, nothing=nothing),
        "acceptance_rate_raw": of_steps(lambda s: (s.accepted_raw, s.drafted), _NO_DRAFT),
        "acceptance_rate_nodes": of_steps(lambda s: (s.accepted, s.nodes), _NO_DRAFT),
        "acceptance_rate_mean_of_samples": mean_of_samples(turns, rate, zero=_NO_DRAFT, nothing=nothing),
        "nodes_per_step": of_steps(lambda s: (s.nodes, s.count), _NO_STEP),
    }
    return figures


def _steps(read: Callable[[StepSums], tuple[float | None, float | None]]) -> Read:
    def of_turn(turn: TurnFacts) -> tuple[float, float] | None:
        if turn.steps is None:
            return None
        top, bottom = read(turn.steps)
        return None if top is None or bottom is None else (top, bottom)

    return of_turn


def _plus(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _prefill_unknown(turn: TurnFacts) -> bool:
    """Whether the turn's entries may hold the prefill's token: an imported file rarely says."""
    return turn.imported and not turn.turn.prefill_emits


def _block_efficiency(turn: TurnFacts) -> tuple[float, float] | None:
    return None if turn.steps is None else (turn.tokens - turn.turn.prefill_emits, turn.steps.count)


def _per_pass(turn: TurnFacts) -> tuple[float, float] | None:
    if turn.steps is None or _prefill_unknown(turn):
        return None
    return turn.tokens, turn.steps.count + 1


def _entries(turn: TurnFacts) -> tuple[float, float] | None:
    """Sum and number of the entries of `accept_lengths`: the prefill's token and what each step kept, zeros dropped."""
    if turn.steps is None:
        return None
    emits = turn.turn.prefill_emits
    return emits + turn.steps.kept, emits + turn.steps.entries


def _specdec_bench_al(turns: Sequence[TurnFacts], nothing: str) -> Figure:
    """Mean over samples (of the mean over rounds) of the mean chunk length of all turns of one request."""
    values: dict[str, float] = {}
    for sample, mine in by_sample(turns).items():
        rounds: dict[int, list[tuple[int, int] | None]] = {}
        for turn in mine:
            rounds.setdefault(turn.repeat, []).append(_chunks(turn))
        known = [[part for part in parts if part is not None] for parts in rounds.values() if None not in parts]
        requests = [
            sum(tokens for tokens, _ in parts) / sum(chunks for _, chunks in parts)
            for parts in known
            if any(chunks for _, chunks in parts)
        ]
        if requests:
            values[sample] = fmean(requests)
    if values:
        return of_means(fmean(values.values()), list(values), list(values.values()))
    recorded = any(_chunks(turn) is not None for turn in turns)
    return absent("no chunk besides end tokens" if recorded else unrecorded(turns, nothing))


def _chunks(turn: TurnFacts) -> tuple[int, int] | None:
    """Tokens and number of the chunks of a turn, a closing end-of-sequence id removed; None where that is not known."""
    if turn.steps is None or turn.imported:
        return None
    emits = turn.turn.prefill_emits
    chunks = ([emits] if emits else []) + [kept for kept in turn.turn.steps.get("kept", ()) if kept]
    if turn.turn.finish == "eos" and chunks:
        chunks[-1] -= 1
    return sum(chunks), sum(map(bool, chunks))
