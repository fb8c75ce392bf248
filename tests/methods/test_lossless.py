"""Every method through the loop on a real, tiny model in float64, with `generate()` as the outside oracle."""

import pytest
import torch
from saved_heads import save_heads
from told_heads import FREE

from draftboard.methods import Binding, build, method_names, parse
from draftboard.methods.engine import GREEDY, Limits, RootOnly, Sampling, decode
from draftboard.methods.engine.cost import FLAT, CostCurve
from draftboard.testing import RandomDrafter, tiny_model

PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [0, 0, 0, 0, 0], [7], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] * 3]
STEEP = CostCurve(rows=(1, 8, 64), cost=(1.0, 1.4, 6.0))
SETTINGS = {
    "pld": [{"max_ngram": 1, "draft_length": 3, "budget": "paper"}],
    "token_recycling": [{"tree": "samd-60", "prompt_rows": 5, "budget": "paper"}],
    "samd": [
        {"auxiliary": "none"},
        {"auxiliary": "none", "budget": "paper"},
        {"auxiliary": "pld", "min_match": 2},
        {"auxiliary": {"method": "sps", "draft": "small"}, "min_match": 3, "budget": "paper"},
        {"auxiliary": "samd"},
        {"auxiliary": {"method": "eagle", "head": "eagle"}},
        {"auxiliary": {"method": "eagle2", "head": "eagle"}},
        {"auxiliary": {"method": "eagle2", "head": "eagle"}, "min_match": 3, "budget": "paper"},
        {"auxiliary": {"method": "eagle3", "head": "eagle3"}, "min_match": 2},
    ],
    "eagle": [{"tree": "chain", "draft_length": 3, "budget": "paper"}, {"draft_vocab": 5}],
    "eagle2": [
        {"shape": "chain", "depth": 3, "budget": "paper"},
        {"preset": "qwen3", "total_token": "auto", "budget": "paper", "draft_vocab": 7},
        {"total_token": 6, "depth": 2, "top_k": 3},
    ],
    "eagle3": [{"preset": "library", "budget": "paper"}, {"shape": "chain"}],
    "sps": [{"length": "heuristic"}, {"drafts": "greedy", "draft_length": 9}],
}


EXTRA = {
    "sps": {"draft": "small"},
    "eagle": {"head": "eagle"},
    "eagle2": {"head": "eagle"},
    "eagle3": {"head": "eagle3"},
}


def all_methods():
    for name in method_names():
        extra = EXTRA.get(name, {})
        method = build({"method": name, **extra})
        yield method
        if any(hasattr(part, "budget") for part in (method, getattr(method, "auxiliary", None))):
            yield method.with_budget("paper")
        for settings in SETTINGS.get(name, ()):
            yield build({"method": name, **extra, **settings})


METHODS = list(all_methods())
IDS = [f"{method.notation()}-{index}" for index, method in enumerate(METHODS)]


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    return save_heads(tmp_path_factory.mktemp("heads"), vocab=12)


@pytest.fixture(autouse=True)
def _free_heads(monkeypatch):
    """Costs are measured elsewhere; here drafts must not depend on how busy the machine is."""
    monkeypatch.setattr("draftboard.methods.eagle.bound.measure_head", lambda *args, **options: FREE)


@pytest.fixture(scope="module")
def small(heads):
    """A draft model that often agrees: the target with noise in its weights. Heads are found beside it."""
    model = tiny_model(vocab_size=12, dtype="float64", window=256)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.model.parameters():
            weight *= 1 + 0.1 * torch.randn(weight.shape, generator=noise, dtype=weight.dtype)
    model.attached["heads"] = heads
    return model


@pytest.fixture(scope="module")
def truths(model64):
    """Long greedy outputs from `generate()`."""
    found = []
    for prompt in PROMPTS:
        ids = model64.model.generate(torch.tensor([prompt]), max_new_tokens=48, do_sample=False)
        found.append(ids[0, len(prompt) :].tolist())
    return found


def run(method, model, small, prompt, limits, *, curve=FLAT, sampling=GREEDY, seed=0):
    binding = Binding(
        target=model,
        vocab_size=12,
        logit_width=12,
        eos_ids=limits.eos_ids,
        curve=curve,
        load_model=lambda name: small,
        find_folder=lambda name: small.attached["heads"] / name,
    )
    generator = torch.Generator().manual_seed(seed)
    return decode(
        model,
        method.drafter(binding),
        prompt,
        limits=limits,
        sampling=sampling,
        generator=generator,
        verifier=method.verifier(),
    )


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_the_output_is_that_of_generate(method, model64, small, truths, check_trace):
    limits = Limits(max_new_tokens=48)
    for prompt, truth in zip(PROMPTS, truths, strict=True):
        for curve in (FLAT, STEEP) if getattr(method, "budget", "") == "auto" else (FLAT,):
            found = run(method, model64, small, prompt, limits, curve=curve)
            assert found.token_ids == truth
            assert found.finish == "length"
            check_trace(found, limits)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_short_limits_and_ends_cut_where_generate_does(method, model64, small, truths, check_trace):
    prompt, truth = PROMPTS[0], truths[0]
    for count in range(1, 8):
        limits = Limits(max_new_tokens=count)
        assert run(method, model64, small, prompt, limits).token_ids == truth[:count]
    for place in (0, 3, 10, 21, 30):
        limits = Limits(max_new_tokens=48, eos_ids=frozenset({truth[place]}))
        found = run(method, model64, small, prompt, limits)
        assert found.token_ids == truth[: truth.index(truth[place]) + 1]
        assert found.finish == "eos"
        check_trace(found, limits)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_nearly_full_window(method, small, check_trace):
    model = tiny_model(vocab_size=12, dtype="float64", window=44)
    prompt = [n * n % 12 for n in range(30)]
    limits = Limits(max_new_tokens=60)
    plain = decode(model, RootOnly(), prompt, limits=limits)
    assert len(plain.token_ids) == 15
    found = run(method, model, small, prompt, limits)
    assert (found.token_ids, found.finish) == (plain.token_ids, "window")
    check_trace(found, limits)


def test_something_is_accepted(model64, small, truths):
    """Were nothing ever accepted, the tests above would prove little."""
    accepted = {}
    for method in METHODS[1:]:
        found = run(method, model64, small, PROMPTS[3], Limits(max_new_tokens=48))
        accepted[method.notation()] = accepted.get(method.notation(), 0) + sum(found.trace.accepted)
    assert all(accepted.values()), accepted


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_the_seed_alone_decides(method, model64, small):
    """Neither what ran before nor another turn's draws change a sampled output."""
    limits, sampling = Limits(max_new_tokens=20), Sampling(temperature=0.8, top_p=0.95, top_k=9)

    def sampled(prompt, seed):
        return run(method, model64, small, prompt, limits, sampling=sampling, seed=seed)

    first = sampled(PROMPTS[0], 1)
    others = [sampled(PROMPTS[0], seed).token_ids for seed in (2, 3)]
    assert first.token_ids not in others
    decode(model64, RandomDrafter(12), PROMPTS[3], limits=limits)
    run(parse("pld"), model64, small, PROMPTS[1], limits)
    again = sampled(PROMPTS[0], 1)
    assert again.token_ids == first.token_ids
    assert again.trace.accepted == first.trace.accepted
