from dataclasses import dataclass

import pytest

from draftboard.audit.toy import check_itself, check_verifiers
from draftboard.methods.engine import LOSSLESS, Lossless, Sampling, Typical

PLAIN = Sampling(temperature=1.0)
DRAWS = 1500


@pytest.mark.parametrize("sampling", [PLAIN, Sampling(temperature=0.7, top_k=3, top_p=0.8)], ids=["plain", "warped"])
def test_the_lossless_verifier_passes_with_every_draft(sampling):
    checks = check_verifiers([("pld", True, LOSSLESS), ("sps", True, Lossless())], sampling, draws=DRAWS)
    assert [check.draft for check in checks] == ["fixed tree", "drawn chain", "drawn siblings"]
    assert {check.methods for check in checks} == {("pld", "sps")}
    assert all(check.passed for check in checks), checks


def test_a_nearly_greedy_temperature_leaves_one_outcome():
    assert all(
        check.passed for check in check_verifiers([("m", True, LOSSLESS)], Sampling(temperature=1e-3), draws=200)
    )


def test_typical_acceptance_is_seen_to_be_lossy():
    checks = check_verifiers([("medusa", False, Typical())], PLAIN, draws=500)
    assert not any(check.passed for check in checks)
    assert not any(check.lossless for check in checks)


@dataclass(frozen=True)
class TakesAll:
    """Accepts a drafted chain whole."""

    lossless: bool = True

    def judge(self, tree, scores, sampling, generator):
        if len(tree) == 1:
            return LOSSLESS.judge(tree, scores, sampling, generator)
        return [0], tree.token_list[1]


def test_a_verifier_that_takes_every_draft_is_found():
    checks = check_verifiers([("wrong", True, TakesAll()), ("right", True, LOSSLESS)], PLAIN, draws=DRAWS)
    found = {(check.methods, check.draft): check.passed for check in checks}
    assert not any(passed for (methods, _), passed in found.items() if methods == ("wrong",))
    assert all(passed for (methods, _), passed in found.items() if methods == ("right",))
    far = next(check for check in checks if check.methods == ("wrong",))
    assert far.variation > 10 * max(far.plain)


def test_a_draft_that_is_the_target_is_always_accepted():
    check = check_itself(PLAIN, steps=200)
    assert (check.accepted, check.drafted, check.passed) == (600, 600, True)
