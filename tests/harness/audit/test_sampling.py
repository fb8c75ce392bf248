"""Sampling on the tiny model, with a method whose drafts lie about what they were drawn from."""

import pytest

from draftboard.audit import Wish, audit_run
from draftboard.audit.sampling import Asked

LYING = '''
from dataclasses import dataclass
from draftboard.methods import Method, register
from draftboard.methods.engine import Drafter, Proposal, TokenTree

@register("lying")
@dataclass(frozen=True, slots=True, kw_only=True)
class Lying(Method):
    """Drafts one fixed token and says it was drawn from a distribution that makes it certain to be accepted."""
    def drafter(self, binding):
        return Lies(binding.logit_width)

class Lies(Drafter):
    def __init__(self, width):
        self.width = width
    def propose(self, context):
        import torch
        if context.room < 1:
            return TokenTree([context.root])
        q = torch.zeros(2, self.width)
        q[1, 9] = 1e-9
        return TokenTree([context.root, 9], proposal=Proposal(q=q))
'''


@pytest.fixture
def lying(tmp_path, fresh_registry):
    path = tmp_path / "lying.py"
    path.write_text(LYING, encoding="utf-8")
    return path


@pytest.fixture
def quick(monkeypatch):
    """Fewer draws on the toy vocabulary than the command makes."""
    from draftboard.audit import toy

    whole = toy.check_verifiers
    monkeypatch.setattr(toy, "check_verifiers", lambda *told, draws: whole(*told, draws=min(draws, 1000)))


@pytest.mark.usefixtures("quick")
def test_a_sampling_run_is_checked_by_its_distribution(cli, run, models_made, tmp_path):
    told = run("--method", "pld", "--method", "sps", "--draft-model", models_made["draft"], "--temperature", 0.8)
    assert told.code == 0, told.err
    told = cli("audit", tmp_path / "run", "--json", "--prompts", 2, "--draws", 60)
    assert told.code == 0, told.err
    document = told.json
    assert (document["limit"], document["methods"]) == (None, [])
    sampling = document["sampling"]
    assert (sampling["temperature"], sampling["skipped"]) == (0.8, "")
    assert [check["draft"] for check in sampling["toy"]] == ["fixed tree", "drawn chain", "drawn siblings"]
    methods = {check["method"]: check for check in sampling["model"]}
    assert all(check["passed"] for check in methods.values())
    assert [len(check["prompts"]) for check in methods.values()] == [2, 2]
    assert all(prompt["drafted"] == 60 for prompt in methods["sps"]["prompts"])
    toy, model = sampling["itself"]
    assert (toy["accepted"], toy["drafted"]) == (1500, 1500)
    assert model["accepted"] == model["drafted"] > 0


@pytest.mark.usefixtures("quick")
def test_a_draft_that_lies_is_found_on_the_model(cli, run, lying, tmp_path):
    run("--method", "lying", "--plugin", lying, "--temperature", 1.0)
    told = cli("audit", tmp_path / "run", "--prompts", 2, "--draws", 60)
    assert told.code == 1, told.out
    assert "lying: on jsonl/" in told.out
    assert "do not follow the target's probabilities" in told.out


@pytest.mark.usefixtures("quick")
def test_a_greedy_run_is_checked_on_request_and_lost_methods_are_told(cli, run, lying, tmp_path, monkeypatch):
    from draftboard.methods import registry

    run("--method", "lying", "--plugin", lying)
    monkeypatch.delitem(registry._registered, "lying")
    told = cli("audit", tmp_path / "run", "--sampling", "--theta", 0.1, "--prompts", 1, "--draws", 10)
    assert "lying: not checked on the model: cannot be made again from the run" in told.out
    assert "draft = target, toy: 1500 of 1500 accepted: passes" in told.out
    told = cli("audit", tmp_path / "run", "--sampling", "--no-model")
    assert "not checked on the model: the model was not loaded" in told.out


def test_without_sampling_nothing_is_sampled(run, tmp_path):
    run("--method", "pld")
    assert audit_run(tmp_path / "run", Wish(with_model=False)).sampling is None


def test_the_text_ends_before_a_token_that_it_holds():
    asked = Asked(sample="s", prompt=[1, 2], answer=(3, 4, 3, 5))
    assert (asked.text, asked.given) == ([1, 2, 3, 4], 3)


def test_the_text_ends_in_the_middle_of_an_answer_that_repeats_nothing():
    asked = Asked(sample="s", prompt=[1, 2], answer=(3, 4, 5))
    assert (asked.text, asked.given) == ([1, 2, 3], 4)
    assert Asked(sample="s", prompt=[1], answer=(9,)).given == 9
