"""Heads that come with the package: what they say of themselves, and that they fit their target."""

import json

import pytest

from draftboard import models
from draftboard.methods.artifact import read_artifact
from draftboard.methods.eagle.bundled import bundled_head, bundled_heads
from draftboard.methods.eagle.checkpoint import KIND


def test_a_head_for_the_default_model_comes_with_the_package():
    assert "smollm2-135m-eagle" in bundled_heads()
    assert bundled_head("no such head") is None


@pytest.mark.parametrize("name", bundled_heads())
def test_a_bundled_head_says_where_it_comes_from(name):
    folder = bundled_head(name)
    record = read_artifact(folder, KIND)
    assert name == f"{record['target']}-{record['method']}"
    assert record["command"].startswith(f"draftboard prepare {record['method']} --model {record['target']}")
    trainings = list(_trainings(record))
    assert sum(training["answer_tokens"] for training in trainings) >= 400_000
    for training in trainings:
        assert {"mini", "spec_bench"} <= {suite.split()[0] for suite in training["answers"]["excluded"]}
    assert record["held_out"]["accepted_per_step"] >= 0.7
    assert "/" not in json.dumps(record)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 12 * 2**20


def _trainings(record):
    """Yield the training of a head, and those of the heads that it began with."""
    yield record["training"]
    if "init" in record:
        yield from _trainings(record["init"])


@pytest.mark.model
@pytest.mark.parametrize("name", bundled_heads())
def test_a_bundled_head_was_made_for_the_weights_that_are_fetched(name):
    record = read_artifact(bundled_head(name), KIND)
    if not models.is_fetched(record["target"]):
        pytest.skip(f"{record['target']} is not in the cache: draftboard fetch {record['target']}")
    assert record["target_fingerprint"] == models.fingerprint(models.resolve(record["target"]))
