"""The engine's own time beside the model's forwards, and the engine beside its peers, on the bundled model.

    pytest tests/benchmarks -k engine --benchmark-enable --benchmark-only

Contenders take turns within one process and are compared in process CPU time, because the machine may be busy.
Figures are in `extra_info`; nothing is asserted of a time.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns, process_time

import pytest
import torch

from draftboard import models
from draftboard.methods import Binding, parse
from draftboard.methods.engine import Generation, LanguageModel, Limits, decode
from draftboard.methods.engine.cost import measure_cost
from draftboard.suites import load_suite
from draftboard.templates import encode, render, resolve_template

pytestmark = [pytest.mark.model, pytest.mark.benchmark(group="engine")]

TOKENS = 48
ROUNDS = 2


@pytest.fixture(scope="module")
def prompts(request: pytest.FixtureRequest) -> list[list[int]]:
    """Six short prompts of the bundled suite, one a Spec-Bench domain; one when benchmarks are disabled."""
    tokenizer = models.load_tokenizer(models.resolve("smollm2-135m"))
    template = resolve_template("auto", tokenizer)
    chosen = {s.domain: s for s in reversed(load_suite("mini").samples) if s.domain.startswith("spec_bench/")}
    ids = [encode(tokenizer, render(template, tokenizer, s.system, s.turns[:1])) for s in chosen.values()]
    return ids if request.config.getoption("--benchmark-enable") else ids[:1]


class _ForwardTimer:
    """Wraps the model's forward and sums the time in it."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.ns = 0
        self._model, self._forward = model, model.forward

    def __enter__(self) -> "_ForwardTimer":
        def timed(*args: object, **kwargs: object) -> object:
            start = perf_counter_ns()
            out = self._forward(*args, **kwargs)
            self.ns += perf_counter_ns() - start
            return out

        self._model.forward = timed  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        self._model.forward = self._forward


def _generate(target: LanguageModel, method: str, binding: Binding, prompt: list[int], tokens: int) -> Generation:
    return decode(target, parse(method).drafter(binding), prompt, limits=Limits(max_new_tokens=tokens))


def _binding(target: LanguageModel) -> Binding:
    return Binding(
        target=target, vocab_size=target.vocab_size, logit_width=target.vocab_size, curve=measure_cost(target)
    )


@pytest.mark.parametrize("method", ["autoregressive", "samd"])
def test_engine_share_of_a_step(benchmark, target, prompts, method):
    """Share of decoding that is neither the model's forward nor drafting: the target is 3 % and 5 %."""
    binding = _binding(target)
    tokens = TOKENS if benchmark.enabled else 4

    def once() -> list[tuple[int, int, int]]:
        figures = []
        for prompt in prompts:
            with _ForwardTimer(target.model) as timer:
                made = _generate(target, method, binding, prompt, tokens)
            whole = made.end_ns
            figures.append((whole, timer.ns, sum(made.trace.draft_ns)))
        return figures

    once()
    shares = []
    result = benchmark.pedantic(lambda: shares.append(once()), rounds=ROUNDS if benchmark.enabled else 1)
    assert result is None
    share = [1 - sum(f + d for _, f, d in figures) / sum(w for w, _, _ in figures) for figures in shares]
    benchmark.extra_info["engine_share"] = round(median(share), 4)
    benchmark.extra_info["draft_share"] = round(
        median(sum(d for _, _, d in figures) / sum(w for w, _, _ in figures) for figures in shares), 4
    )
    assert all(whole > forward for figures in shares for whole, forward, _ in figures)


def _bare_loop(target: LanguageModel, prompt: list[int], tokens: int) -> list[int]:
    """Forwards and argmax with transformers' own growing cache, and nothing else."""
    from transformers import DynamicCache

    cache = DynamicCache(config=target.config)
    found: list[int] = []
    with torch.inference_mode():
        logits = target.model(torch.tensor([prompt]), cache=cache, use_cache=True, logits_to_keep=1).logits
        for _ in range(tokens):
            found.append(int(logits[0, -1].argmax()))
            if len(found) < tokens:
                logits = target.model(torch.tensor([[found[-1]]]), cache=cache, use_cache=True, logits_to_keep=1).logits
    return found


def _library(target: LanguageModel, prompt: list[int], tokens: int, **options: int) -> list[int]:
    with torch.inference_mode():
        ids = torch.tensor([prompt])
        out = target.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            **options,
        )
    return out[0, len(prompt) :].tolist()


def test_engine_beside_its_peers(benchmark, target, prompts):
    """Tokens per CPU second of `autoregressive` and `pld` beside generate(), a bare loop and generate()'s lookup."""
    binding = _binding(target)
    tokens = TOKENS if benchmark.enabled else 4
    contenders: dict[str, Callable[[list[int]], list[int]]] = {
        "autoregressive": lambda p: _generate(target, "autoregressive", binding, p, tokens).token_ids,
        "pld": lambda p: _generate(target, "pld", binding, p, tokens).token_ids,
        "generate": lambda p: _library(target, p, tokens),
        "generate_lookup": lambda p: _library(target, p, tokens, prompt_lookup_num_tokens=10),
        "bare_loop": lambda p: _bare_loop(target, p, tokens),
    }
    spent = {name: [0.0] * ROUNDS for name in contenders}
    outputs: dict[str, list[list[int]]] = {}

    def rounds() -> None:
        for turn in range(ROUNDS if benchmark.enabled else 1):
            for place, prompt in enumerate(prompts):
                names = list(contenders)
                shift = (turn + place) % len(names)
                for name in names[shift:] + names[:shift]:
                    start = process_time()
                    found = contenders[name](prompt)
                    spent[name][turn] += process_time() - start
                    if turn == 0:
                        outputs.setdefault(name, []).append(found)

    benchmark.pedantic(rounds, rounds=1)
    for ours, theirs in (
        ("autoregressive", "generate"),
        ("autoregressive", "bare_loop"),
        ("pld", "generate_lookup"),
        ("pld", "autoregressive"),
    ):
        ratios = [b / a for a, b in zip(spent[ours], spent[theirs], strict=True) if a]
        benchmark.extra_info[f"{ours}_over_{theirs}"] = round(median(ratios), 3)
    assert all(found == outputs["generate"] for found in outputs.values())
