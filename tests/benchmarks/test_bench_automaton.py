"""What a token costs the suffix automata, and whether the cost grows with the text.

    pytest tests/benchmarks -k automaton --benchmark-enable --benchmark-columns=min,median,rounds

Each `window` benchmark times the same number of further tokens on top of a text of the given size. Its
`extra_info` (in the JSON of `--benchmark-json FILE`) holds the figures to quote: process-CPU nanoseconds per
token, and their ratio to a control, a text of 10,000 tokens, extended in turn with it in slices so that both
see the same machine. `singly` is how a decoder commits tokens, `at-once` how a prompt or a corpus is read.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from draftboard.methods.samd.automaton import Match, SuffixAutomaton
from draftboard.methods.samd.static import StaticAutomaton

VOCAB = 49_152
CONTROL = 10_000
WINDOW, SLICE = 20_000, 500
SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000]
SMALL = 2_000
"""Size under `--benchmark-disable`, where only the code is tried."""


def make_text(size: int, source: str, seed: int = 1) -> list[int]:
    """Return Zipf-distributed tokens; four of five phrases, of 8 tokens on average, repeat earlier ones.

    `far` takes a phrase from anywhere in the text, the worst case for caches; `near` makes the distance's
    logarithm uniform, as in prose, where what recurs was mostly seen lately.
    """
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1.0 / np.arange(1, VOCAB + 1))
    weights /= weights[-1]
    names = rng.permutation(VOCAB)
    text = np.empty(size + 1_000, dtype=np.int64)
    filled = 0
    while filled < size:
        length = min(int(rng.geometric(1 / 8)), 1_000)
        if filled > 64 and rng.random() < 0.8:
            distance = filled - rng.integers(filled) if source == "far" else int(filled ** rng.random())
            start = filled - int(distance)
            length = min(length, filled - start)
            text[filled : filled + length] = text[start : start + length]
        else:
            drawn = np.searchsorted(weights, rng.random(length))
            text[filled : filled + length] = names[np.minimum(drawn, VOCAB - 1)]
        filled += length
    return text[:size].tolist()


@dataclass(slots=True, kw_only=True)
class _Times:
    """Process-CPU nanoseconds per token of the rounds, of the text at hand and of the control."""

    here: list[float] = field(default_factory=list)
    control: list[float] = field(default_factory=list)


def _add(automaton: SuffixAutomaton, tokens: list[int], *, singly: bool) -> float:
    start = time.process_time_ns()
    if singly:
        extend = automaton.extend
        for token in tokens:
            extend(token)
    else:
        automaton.extend_all(tokens)
    return time.process_time_ns() - start


def _alternate(size: int, text: list[int], window: int, times: _Times, *, singly: bool) -> Callable[[], None]:
    """Return a round: `window` tokens on a text of `size`, in turn with as many on the control."""
    automaton, control = SuffixAutomaton(text[:size]), SuffixAutomaton(text[: min(size, CONTROL)])

    def timed_round() -> None:
        here = beside = 0.0
        for start in range(0, window, SLICE):
            stop = min(start + SLICE, window)
            tokens = text[len(control) : len(control) + stop - start]
            beside += _add(control, tokens, singly=singly)
            here += _add(automaton, text[size + start : size + stop], singly=singly)
        times.here.append(here / window)
        times.control.append(beside / window)

    return timed_round


@pytest.mark.parametrize("singly", [True, False], ids=["singly", "at-once"])
@pytest.mark.parametrize("source", ["near", "far"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.benchmark(group="suffix automaton: 20,000 further tokens, beside a control")
def test_automaton_window(benchmark: Any, size: int, source: str, singly: bool) -> None:
    size, window, rounds = (size, WINDOW, 3) if benchmark.enabled else (SMALL, SMALL, 1)
    text = make_text(max(size, CONTROL) + window, source)
    times = _Times()
    last: list[Callable[[], None]] = []

    def setup() -> tuple[tuple[()], dict[str, Any]]:
        last[:] = [_alternate(size, text, window, times, singly=singly)]
        return (), {}

    benchmark.pedantic(lambda: last[0](), setup=setup, rounds=rounds)
    assert len(times.here) == len(times.control) >= 1
    ratios = [here / control for here, control in zip(times.here, times.control, strict=True)]
    benchmark.extra_info.update(
        tokens=size,
        cpu_ns_per_token=float(np.median(times.here)),
        control_cpu_ns_per_token=float(np.median(times.control)),
        ratio=float(np.median(ratios)),
        ratio_lowest=min(ratios),
        ratio_highest=max(ratios),
        tokens_per_cpu_s=1e9 / float(np.median(times.here)),
    )


@pytest.mark.parametrize("size", [10_000, 1_000_000])
@pytest.mark.benchmark(group="suffix automaton: one lookup and a draft of 39")
def test_automaton_lookup_and_draft(benchmark: Any, size: int) -> None:
    size = size if benchmark.enabled else SMALL
    text = make_text(size, "near")
    automaton = SuffixAutomaton(text[:-500])
    roots = text[-500:]

    def draft() -> int:
        return sum(len(automaton.draft(automaton.lookup(root), 39)) for root in roots)

    assert benchmark(draft) > 0
    benchmark.extra_info.update(tokens=size, lookups=len(roots))


@pytest.mark.benchmark(group="static automaton: build, load, walk")
@pytest.mark.parametrize("task", ["build", "load", "walk"])
def test_static_automaton(benchmark: Any, tmp_path: Path, task: str) -> None:
    size = 300_000 if benchmark.enabled else SMALL
    text = make_text(size, "near")
    documents = [text[start : start + 500] for start in range(0, size, 500)]
    static = StaticAutomaton.build(documents, eos=2, vocab_size=VOCAB)
    path = tmp_path / "corpus.safetensors"
    static.save(path)
    walk = [token for start in range(0, size - 50, size // 200) for token in text[start : start + 50]]
    tasks: dict[str, Callable[[], Any]] = {
        "build": lambda: StaticAutomaton.build(documents, eos=2, vocab_size=VOCAB).states,
        "load": lambda: StaticAutomaton.load(path).states,
        "walk": lambda: static.advance(Match(0, 0), walk).length,
    }
    assert benchmark.pedantic(tasks[task], rounds=3 if benchmark.enabled else 1) > 0
    benchmark.extra_info.update(tokens=size, states=static.states, file_bytes=path.stat().st_size)
