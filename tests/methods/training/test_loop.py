"""A quadratic bowl: small enough that every step can be followed."""

import json

import pytest
import torch
from torch import nn

from draftboard.methods import MethodError
from draftboard.methods.training.loop import Recipe, train


class Bowl(nn.Module):
    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.tensor([4.0, -3.0]))

    def forward(self, batch):
        # A little noise, so that the state of the random generator matters for going on.
        return ((self.at - batch) ** 2).sum() + 0.1 * torch.randn(()) * self.at.sum()


RECIPE = Recipe(steps=60, rate=0.3, evaluate_every=20, save_every=10, seed=4)


def batch(place):
    return torch.tensor([1.0, 2.0]) + 0.01 * (place % 3)


def go(folder, *, recipe=RECIPE, stop=None, about=None, told=None):
    bowl = Bowl()

    def report(step, loss, figures):
        if told is not None:
            told.append((step, figures))
        if step == stop:
            raise KeyboardInterrupt

    made = train(
        bowl,
        batch,
        recipe,
        folder=folder,
        about=about or {},
        evaluate=lambda: {"distance": float((bowl.at - 1.5).abs().sum().detach())},
        report=report,
    )
    return bowl, made


def test_it_finds_the_bottom_and_tells_the_way(tmp_path):
    told = []
    bowl, made = go(tmp_path, told=told)
    assert bowl.at.tolist() == pytest.approx([1.01, 2.01], abs=0.3)
    assert made.steps == 60
    assert made.loss < 1
    assert [row["step"] for row in made.evaluations] == [20, 40, 60]
    assert [step for step, figures in told if figures] == [20, 40, 60]
    assert [step for step, _ in told] == list(range(1, 61))
    assert not bowl.training


def test_an_interrupted_training_goes_on_to_the_same_end(tmp_path):
    whole, made = go(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "torn", stop=37)
    told = []
    torn, again = go(tmp_path / "torn", told=told)
    assert told[0][0] == 31
    assert torch.equal(torn.at, whole.at)
    assert again.evaluations == made.evaluations
    assert again.loss == made.loss


def test_a_finished_training_is_not_done_twice(tmp_path):
    whole, made = go(tmp_path)
    told = []
    again, found = go(tmp_path, told=told)
    assert told == []
    assert torch.equal(again.at, whole.at)
    assert found.evaluations == made.evaluations


def test_another_training_in_its_place_is_refused_with_what_differs(tmp_path):
    go(tmp_path)
    with pytest.raises(MethodError, match="another head, rate"):
        go(tmp_path, recipe=Recipe(steps=60, rate=0.2, evaluate_every=20, save_every=10, seed=4), about={"head": 1})
    (tmp_path / "training.json").write_text(json.dumps({"about": {}}))
    with pytest.raises(MethodError, match="cannot be read"):
        go(tmp_path)


def test_a_loss_that_is_no_number_ends_it(tmp_path):
    with pytest.raises(MethodError, match="loss is inf at step 0"):
        train(
            Bowl(),
            lambda place: torch.tensor([float("inf"), 0.0]),
            RECIPE,
            folder=tmp_path,
            about={},
            evaluate=dict,
        )


def test_the_rate_rises_and_falls():
    recipe = Recipe(steps=100, rate=1.0, warmup=0.1)
    rates = [recipe.rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == 1.0
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[-1] == pytest.approx(0.1, abs=0.01)
    assert Recipe(steps=100, rate=1.0, decay="none").rate_at(99) == 1.0
