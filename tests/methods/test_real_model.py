"""Losslessness on the bundled model in float32: every method equals plain decoding, and that equals `generate()`.

By default two short prompts of the bundled suite. The full check reads Spec-Bench:

    DRAFTBOARD_DATA=… DRAFTBOARD_PROMPTS=24 DRAFTBOARD_TOKENS=128 pytest tests/methods/test_real_model.py
"""

import os
from pathlib import Path

import pytest
import torch

from draftboard import models
from draftboard.methods import Binding, Method, build, parse
from draftboard.methods.engine import LanguageModel, Limits, decode
from draftboard.methods.engine.cost import CostCurve
from draftboard.suites import Sample, limited, load_suite
from draftboard.templates import encode, render, resolve_template

pytestmark = pytest.mark.model

PROMPTS = int(os.environ.get("DRAFTBOARD_PROMPTS", "2"))
TOKENS = int(os.environ.get("DRAFTBOARD_TOKENS", "24"))

# A curve under which drafts pay, whatever this machine is: the check is about long drafts, not about speed.
CURVE = CostCurve(rows=(1, 8, 16, 64), cost=(1.0, 1.1, 1.3, 2.8))
METHODS = ("pld", "token_recycling", "samd", "samd[none]", "samd[pld]", "eagle", "eagle2", "eagle3", "samd[eagle2]")


@pytest.fixture(scope="module")
def target() -> LanguageModel:
    if not models.is_fetched("smollm2-135m"):
        pytest.skip("the bundled model is not in the cache: draftboard fetch smollm2-135m")
    return LanguageModel(models.load_model(models.resolve("smollm2-135m"), dtype="float32", device="cpu"))


@pytest.fixture(scope="module")
def draft_folder(target: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target's first two layers as a draft model of its own: a poor drafter, but a real one."""
    from transformers import AutoModelForCausalLM

    config = type(target.config)(**{**target.config.to_dict(), "num_hidden_layers": 2})
    model = AutoModelForCausalLM.from_config(config)
    known = model.state_dict().keys()
    model.load_state_dict({k: v for k, v in target.model.state_dict().items() if k in known})
    folder = tmp_path_factory.mktemp("draft")
    model.save_pretrained(folder)
    models.load_tokenizer(models.resolve("smollm2-135m")).save_pretrained(folder)
    return folder


def _samples() -> list[Sample]:
    data = os.environ.get("DRAFTBOARD_DATA")
    if data and PROMPTS > 2:
        suite = load_suite(f"spec_bench@{Path(data) / 'spec-bench' / 'question.jsonl'}")
        return list(limited(suite, -(-PROMPTS // len(suite.domains)), 0).samples)[:PROMPTS]
    wanted = ("spec_bench/qa", "speed_bench/coding")
    return [next(s for s in load_suite("mini").samples if s.domain == domain) for domain in wanted]


def test_every_method_equals_plain_decoding_and_generate(target: LanguageModel, draft_folder: Path) -> None:
    tokenizer = models.load_tokenizer(models.resolve("smollm2-135m"))
    template = resolve_template("auto", tokenizer)
    others: dict[str, LanguageModel] = {}

    def load(name: str) -> LanguageModel:
        if name not in others:
            others[name] = LanguageModel(models.load_model(models.resolve(name), dtype="float32", device="cpu"))
        return others[name]

    binding = Binding(
        target=target,
        vocab_size=len(tokenizer),
        logit_width=target.vocab_size,
        curve=CURVE,
        eos_ids=frozenset({2}),
        load_model=load,
        fingerprint=models.fingerprint(models.resolve("smollm2-135m")),
    )
    methods: dict[str, Method] = {name: parse(name) for name in METHODS}
    methods |= {f"{name}, paper": method.with_budget("paper") for name, method in methods.items()}
    methods["sps"] = build({"method": "sps", "draft": str(draft_folder), "draft_length": 3})
    accepted = dict.fromkeys(methods, 0)
    for sample in _samples():
        ids = encode(tokenizer, render(template, tokenizer, sample.system, sample.turns[:1]))
        limits = Limits(max_new_tokens=TOKENS, eos_ids=frozenset({2}))
        plain = decode(target, parse("autoregressive").drafter(binding), ids, limits=limits).token_ids
        with torch.inference_mode():
            prompt = torch.tensor([ids])
            out = target.model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=TOKENS, do_sample=False, pad_token_id=2
            )
        assert out[0, len(ids) :].tolist() == plain, f"{sample.sample_id}: plain decoding differs from generate()"
        for name, method in methods.items():
            made = decode(target, method.drafter(binding), ids, limits=limits)
            assert made.token_ids == plain, f"{sample.sample_id}: {name} differs from plain decoding"
            accepted[name] += sum(made.trace.accepted)
    idle = [name for name, count in accepted.items() if count == 0]
    assert set(idle) <= {"sps"}, f"nothing was ever accepted from {idle}: the check would prove nothing"
