"""What engine and drafter cost beside the forwards of target and head, for `eagle2` on the bundled model.

    pytest tests/benchmarks -k eagle --benchmark-enable --benchmark-only

The head has the target's shape, random weights and 8192 draft ids: its drafts are worthless, but cost what a trained
head's cost. Costs are declared such that drafting pays, and nothing is learned, so that `auto` goes on drafting.
Nothing is asserted of a time.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

import pytest
import torch

from draftboard.methods import Binding, build
from draftboard.methods.eagle.bound import BoundHead
from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import Head, make_head
from draftboard.methods.eagle.sizing import Calibration, HeadCost
from draftboard.methods.engine import LanguageModel, Limits, decode
from draftboard.methods.engine.cost import CostCurve

pytestmark = [pytest.mark.model, pytest.mark.benchmark(group="eagle")]

TOKENS = 12
GENTLE = CostCurve(rows=(1, 64), cost=(1.0, 2.0))
CHEAP = HeadCost(root=CostCurve(rows=(1, 64), cost=(0.01, 0.02)), level=CostCurve(rows=(1, 64), cost=(0.01, 0.02)))


@pytest.fixture
def head(target: LanguageModel) -> Head:
    config = HeadConfig(
        kind="eagle",
        hidden=576,
        target_hidden=576,
        vocab=target.vocab_size,
        draft_vocab=8192,
        heads=9,
        kv_heads=3,
        head_dim=64,
        intermediate=1536,
        taps=(30,),
        own_lm_head=False,
        rope_theta=100000.0,
    )
    torch.manual_seed(0)
    made = make_head(config, torch.arange(0, 6 * 8192, 6)).to(target.dtype).eval().requires_grad_(False)
    made.layers[0].mlp.down_proj.weight *= 400
    made.bind(target.input_embedding, target.output_embedding)
    return made


class _Stopwatch:
    """Sums the time spent in functions that do not call each other."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self, run: Callable[..., object]) -> Callable[..., object]:
        def timed(*args: object, **kwargs: object) -> object:
            start = perf_counter_ns()
            out = run(*args, **kwargs)
            self.ns += perf_counter_ns() - start
            return out

        return timed


@pytest.mark.parametrize("budget", ["auto", "paper"])
def test_share_of_a_step_beside_the_forwards(benchmark, monkeypatch, target, head, budget):
    """The target is 8 %."""
    in_target, in_head = _Stopwatch(), _Stopwatch()
    monkeypatch.setattr(target.model, "forward", in_target(target.model.forward))
    for name in ("forward", "logits", "feature"):
        monkeypatch.setattr(head, name, in_head(getattr(head, name)))
    monkeypatch.setattr(Calibration, "learn", lambda *args: None)
    method = build({"method": "eagle2", "budget": budget, "preset": "evaluation"})
    target.attached["eagle", "eagle", "auto", 0, "None"] = BoundHead(head=head, target=target, _cost=CHEAP)
    size = target.vocab_size
    binding = Binding(target=target, vocab_size=size, logit_width=size, curve=GENTLE)
    limits = Limits(max_new_tokens=TOKENS if benchmark.enabled else 3)
    shares: list[tuple[float, float, float]] = []

    def once() -> None:
        in_target.ns = in_head.ns = 0
        made = decode(target, method.drafter(binding), [(7 * n) % 9000 for n in range(120)], limits=limits)
        whole = made.end_ns
        shares.append((1 - (in_target.ns + in_head.ns) / whole, in_head.ns / whole, sum(made.trace.nodes) / TOKENS))

    once()
    shares.clear()
    benchmark.pedantic(once, rounds=3 if benchmark.enabled else 1)
    for place, name in enumerate(("engine_and_drafter_share", "head_share", "nodes_a_step")):
        benchmark.extra_info[name] = round(median(share[place] for share in shares), 4)
    assert all(0 < own < 1 and of_head > 0 for own, of_head, _ in shares)
