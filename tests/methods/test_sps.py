import json
import random
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import torch

from draftboard.lossless import chi_square
from draftboard.methods import MethodError, Preflight, Vocabulary
from draftboard.methods.engine import (
    GREEDY,
    LOSSLESS,
    Context,
    Limits,
    Sampling,
    Scores,
    TokenTree,
    Verdict,
    decode,
)
from draftboard.methods.engine.verify import warp
from draftboard.methods.method import Binding
from draftboard.methods.sps import Sps, check_vocabulary
from draftboard.testing import TableTarget, tiny_model

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
CASE = json.loads((Path(__file__).parents[1] / "data" / "22-vocab-pairs.json").read_text())


def vocabulary(row):
    return Vocabulary(tokens=row["vocab"], logit_width=row["logit_width"], eos_ids=frozenset({row["eos_token_id"]}))


def bound(method, draft, **changes):
    size = draft.vocab_size
    return method.drafter(
        Binding(
            **{
                "target": None,
                "vocab_size": size,
                "logit_width": size,
                "load_model": lambda name: draft,
                **changes,
            }
        )
    )


def ask(drafter, text, *, room=99, max_nodes=99, sampling=GREEDY, generator=None):
    context = Context(
        tokens=list(text[:-1]),
        root=text[-1],
        room=room,
        max_nodes=max_nodes,
        sampling=sampling,
        generator=generator,
    )
    with torch.inference_mode():
        return drafter.propose(context)


def verdict(tree, accepted, bonus=0):
    emitted = [*tree.token_list[1 : 1 + accepted], bonus]
    return Verdict(tree=tree, path=list(range(accepted + 1)), emitted=emitted, scores=Scores(torch.zeros(1, 1)))


@torch.inference_mode()
def assert_cache_is(model, ids):
    assert model.length == len(ids)
    fresh = tiny_model(vocab_size=12, dtype="float64", window=model.window, seed=1)
    fresh.prefill(ids)
    for side in ("key_layers", "value_layers"):
        for ours, theirs in zip(getattr(model._cache, side), getattr(fresh._cache, side), strict=True):
            torch.testing.assert_close(ours[:, :, : len(ids)], theirs[:, :, : len(ids)], atol=1e-12, rtol=0)


@pytest.fixture(scope="module")
def draft():
    return tiny_model(vocab_size=12, dtype="float64", window=256, seed=1)


@pytest.mark.parametrize("accepted", [0, 1, 2, 3, 4])
def test_the_draft_models_cache_equals_a_recomputation(draft, accepted):
    """Whatever was accepted, it holds the text and its own draft; one more step later it still does."""
    drafter = bound(Sps(draft="x", draft_length=4), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    text = [*PROMPT, 7]
    for _ in range(3):
        tree = ask(drafter, text)
        assert len(tree) == 5
        assert_cache_is(draft, [*text, *tree.token_list[1:-1]])
        judged = verdict(tree, accepted, bonus=(tree.token_list[-1] + 1) % 12)
        drafter.observe(judged)
        text += judged.emitted


def test_drafts_are_what_the_draft_model_would_write(draft, greedy):
    drafter = bound(Sps(draft="x", draft_length=6), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    for root in (7, 2, 11):
        tree = ask(drafter, [*PROMPT, root])
        fresh = tiny_model(vocab_size=12, dtype="float64", window=256, seed=1)
        assert tree.token_list[1:] == greedy(fresh, [*PROMPT, root], max_new_tokens=6).token_ids
        assert tree.proposal is None


@pytest.mark.parametrize(("limits", "expected"), [({"room": 2}, 2), ({"max_nodes": 4}, 3), ({"room": 0}, 0)])
def test_the_draft_heeds_room_and_nodes(draft, limits, expected):
    drafter = bound(Sps(draft="x", draft_length=6), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    assert len(ask(drafter, [*PROMPT, 7], **limits)) - 1 == expected
    assert len(ask(drafter, [*PROMPT, 7, 3])) - 1 == 6
    assert_cache_is(draft, [*PROMPT, 7, 3, *ask(drafter, [*PROMPT, 7, 3]).token_list[1:-1]])


def test_sampled_drafts_carry_the_distributions_they_were_drawn_from(draft):
    sampling = Sampling(temperature=0.8, top_p=0.9)
    drafter = bound(Sps(draft="x", draft_length=3), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    counts = Counter()
    for seed in range(150):
        generator = torch.Generator().manual_seed(seed)
        tree = ask(drafter, [*PROMPT, 7], sampling=sampling, generator=generator)
        counts[tree.token_list[1]] += 1
    assert tree.proposal.q.shape == (4, 12)
    fresh = tiny_model(vocab_size=12, dtype="float64", window=256, seed=1)
    with torch.inference_mode():
        logits = fresh.prefill([*PROMPT, *tree.token_list[:-1]], all_logits=True).logits
    q = warp(logits[len(PROMPT) :], sampling)
    torch.testing.assert_close(tree.proposal.q[1:].to(q), q, atol=1e-6, rtol=0)
    assert all(float(tree.proposal.q[node, tree.token_list[node]]) > 0 for node in (1, 2, 3))
    assert chi_square([counts[token] for token in range(12)], q[0].tolist()).passed


def test_greedy_drafts_stay_greedy_when_the_run_samples(draft):
    method = Sps(draft="x", draft_length=3, drafts="greedy")
    drafter = bound(method, draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    sampled = ask(drafter, [*PROMPT, 7], sampling=Sampling(temperature=1.0), generator=torch.Generator())
    assert sampled.proposal is None
    assert sampled.token_list == ask(drafter, [*PROMPT, 7]).token_list


def test_the_heuristic_grows_after_full_acceptance_and_shrinks_otherwise(draft):
    drafter = bound(Sps(draft="x", draft_length=2, length="heuristic"), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    text, sizes = [*PROMPT, 7], []
    for accepted in (2, 4, 0, 1, 0, 0, 0, 0, 0, 0, 1):
        tree = ask(drafter, text)
        sizes.append(len(tree) - 1)
        judged = verdict(tree, min(accepted, sizes[-1]), bonus=3)
        drafter.observe(judged)
        text += judged.emitted
    assert sizes == [2, 4, 6, 5, 4, 3, 2, 1, 1, 1, 1]
    assert len(ask(drafter, text)) - 1 == 3


def test_another_drafters_verdict_changes_nothing(draft):
    drafter = bound(Sps(draft="x", draft_length=3, length="heuristic"), draft)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    ask(drafter, [*PROMPT, 7])
    foreign = TokenTree([7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    drafter.observe(verdict(foreign, 0, bonus=9))
    tree = ask(drafter, [*PROMPT, 7, 9])
    assert len(tree) - 1 == 3
    assert_cache_is(draft, [*PROMPT, 7, 9, *tree.token_list[1:-1]])


def test_wider_logits_are_never_proposed(model64):
    """Case 22: ids beyond the token table exist in the draft model's logits only."""
    wide = tiny_model(vocab_size=32, dtype="float64", window=256, seed=1)
    with torch.no_grad():
        wide.model.lm_head.weight[12:] *= 20
    limits = Limits(max_new_tokens=40)
    for sampling in (GREEDY, Sampling(temperature=1.0), Sampling(temperature=1.0, top_p=0.5)):
        drafter = bound(Sps(draft="x"), wide, target=model64, vocab_size=12, logit_width=model64.vocab_size)
        trees = []
        propose = drafter.propose

        def recording(context, propose=propose, trees=trees):
            trees.append(propose(context))
            return trees[-1]

        drafter.propose = recording
        found = decode(
            model64,
            drafter,
            PROMPT,
            limits=limits,
            sampling=sampling,
            generator=torch.Generator().manual_seed(2),
        )
        assert len(found.token_ids) == 40
        assert max(max(tree.token_list) for tree in trees) < 12
        for tree in trees:
            if tree.proposal is not None:
                assert tree.proposal.q.shape == (len(tree), 12)
                torch.testing.assert_close(
                    tree.proposal.q[1:].sum(-1).float(), torch.ones(len(tree) - 1), atol=1e-5, rtol=0
                )


def test_a_wider_target_gets_a_padded_distribution(draft):
    drafter = bound(Sps(draft="x", draft_length=2), draft, vocab_size=12, logit_width=16)
    with torch.inference_mode():
        drafter.begin(PROMPT, None)
    tree = ask(drafter, [*PROMPT, 7], sampling=Sampling(temperature=1.0), generator=torch.Generator())
    assert tree.proposal.q.shape == (3, 16)
    assert float(tree.proposal.q[1:, 12:].sum()) == 0


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=2.0)], ids=["greedy", "sampled"])
def test_behind_an_id_that_the_draft_model_has_no_row_for_nothing_is_drafted(sampling):
    narrow = tiny_model(vocab_size=6, dtype="float64", window=256, seed=1)
    wide = tiny_model(vocab_size=12, dtype="float64", window=256)
    prompt = [3, 1, 4, 1, 5]
    for start in (prompt, [*prompt, 9]):
        drafter = bound(Sps(draft="x", draft_length=3), narrow, target=wide, vocab_size=12, logit_width=12)
        found = decode(wide, drafter, start, limits=Limits(max_new_tokens=30), sampling=sampling)
        assert len(found.token_ids) == 30
        outside = next(at for at, token in enumerate([*start, *found.token_ids]) if token >= 6) - len(start)
        ends = accumulate(found.trace.kept, initial=1)
        drafted = [d for d, end in zip(found.trace.drafted, ends, strict=False) if end > outside]
        assert sum(drafted) == 0
        assert drafted


@pytest.mark.parametrize("window", [4, 8, 9, 10, 14, 24])
def test_a_draft_model_with_a_smaller_window_stops_drafting(model64, greedy, window):
    small = tiny_model(vocab_size=12, dtype="float64", window=window, seed=1)
    drafter = bound(Sps(draft="x", draft_length=4), small, target=model64)
    found = decode(model64, drafter, PROMPT, limits=Limits(max_new_tokens=40))
    assert found.token_ids == greedy(model64, PROMPT, max_new_tokens=40).token_ids
    assert small.length <= window
    assert (sum(found.trace.drafted) > 0) == (window > len(PROMPT))
    assert sum(found.trace.drafted[-4:]) == 0


def test_a_draft_that_is_the_target_is_always_accepted(model64):
    copy = tiny_model(vocab_size=12, dtype="float64", window=256)
    for sampling in (GREEDY, Sampling(temperature=1.0, top_p=0.9)):
        drafter = bound(Sps(draft="x", draft_length=3), copy, target=model64)
        found = decode(
            model64,
            drafter,
            PROMPT,
            limits=Limits(max_new_tokens=41),
            sampling=sampling,
            generator=torch.Generator().manual_seed(1),
        )
        assert found.trace.kept.tolist() == [4] * 10


def test_turns_do_not_leak_into_each_other(model64, draft):
    method = Sps(draft="x", draft_length=4)
    limits = Limits(max_new_tokens=30)
    first = decode(model64, bound(method, draft, target=model64), PROMPT, limits=limits)
    decode(model64, bound(method, draft, target=model64), [2, 2, 2, 8, 1, 0, 4, 4, 4, 4, 4], limits=limits)
    again = decode(model64, bound(method, draft, target=model64), PROMPT, limits=limits)
    assert again.trace.accepted == first.trace.accepted


def probabilities(seed):
    dice = random.Random(seed)
    rows = [[0.1 + dice.random() ** 2 for _ in range(8)] for _ in range(8)]
    return [[value / sum(row) for value in row] for row in rows]


@pytest.mark.parametrize("drafts", ["sampled", "greedy"])
def test_the_whole_method_keeps_the_targets_distribution(drafts):
    """Two tokens behind one root: the joint distribution is that of plain sampling."""
    sampling = Sampling(temperature=0.8, top_p=0.95)
    target, small = TableTarget.markov(probabilities(3)), TableTarget.markov(probabilities(4))
    p = warp(torch.tensor(probabilities(3), dtype=torch.float64).log(), sampling)
    joint = [float(p[0, a] * p[a, b]) for a in range(8) for b in range(8)]
    drafter = bound(Sps(draft="x", draft_length=2, drafts=drafts), small)
    generator = torch.Generator().manual_seed(11)
    counts = Counter()
    with torch.inference_mode():
        drafter.begin([1], None)
        target.prefill([1])
        for _ in range(5000):
            tree = ask(drafter, [1, 0], sampling=sampling, generator=generator)
            path, bonus = LOSSLESS.judge(tree, target.forward(tree), sampling, generator)
            emitted = [*(tree.token_list[node] for node in path[1:]), bonus]
            if len(emitted) == 1:
                emitted.append(int(torch.multinomial(p[bonus], 1, generator=generator)))
            counts[tuple(emitted[:2])] += 1
    result = chi_square([counts[(a, b)] for a in range(8) for b in range(8)], joint)
    assert result.passed, result


def test_case_22():
    target = vocabulary(CASE["target"])
    drafts = {row["name"]: vocabulary(row) for row in CASE["drafts"]}
    names = {"target_name": "big", "draft_name": "small"}
    check_vocabulary(target, drafts["same-table-wider-logits"], **names)
    with pytest.raises(MethodError) as caught:
        check_vocabulary(target, drafts["two-words-swapped"], **names)
    text = str(caught.value)
    assert "draft model small and target big do not share their token table" in text
    assert "id 7 is 'nine' in the target and 'ten' in the draft" in text
    with pytest.raises(MethodError, match=r"ids 9 to 11 are missing in the draft.*translates between tables"):
        check_vocabulary(target, drafts["shorter-table"])
    with pytest.raises(MethodError, match="ids 9 to 11 are missing in the target"):
        check_vocabulary(drafts["shorter-table"], target)


def test_other_tables_that_do_not_match():
    def table(*words, width=9):
        return Vocabulary(tokens={word: index for index, word in enumerate(words) if word}, logit_width=width)

    with pytest.raises(MethodError, match="id 2 is missing in the draft"):
        check_vocabulary(table("a", "b", "c"), table("a", "b"))
    with pytest.raises(MethodError, match="2 ids, the first 1, are missing in the draft"):
        check_vocabulary(table("a", "b", "c", "d"), table("a", "", "c"))
    with pytest.raises(MethodError, match="the draft scores 2 ids but its table has 3"):
        check_vocabulary(table("a", "b", "c"), table("a", "b", "c", width=2))


def test_the_vocabulary_is_checked_before_anything_is_loaded():
    tables = {row["name"]: vocabulary(row) for row in CASE["drafts"]}
    known = Preflight(target="big", vocabulary=vocabulary(CASE["target"]), vocabulary_of=tables.__getitem__)
    Sps(draft="same-table-wider-logits").preflight(known)
    with pytest.raises(MethodError, match="id 7 is 'nine'"):
        Sps(draft="two-words-swapped").preflight(known)
    with pytest.raises(MethodError, match="sps needs a draft model"):
        Sps().preflight(known)


def test_a_run_that_loads_no_models_is_told():
    with pytest.raises(MethodError, match="can load its draft model"):
        Sps(draft="x").drafter(Binding(target=None, vocab_size=8, logit_width=8))


@pytest.mark.parametrize("length", [0, 64])
def test_impossible_settings_are_refused(length):
    with pytest.raises(MethodError, match="draft_length must lie between 1 and 63"):
        Sps(draft="x", draft_length=length)


def test_a_toy_target_with_a_real_draft(draft):
    """Nothing is accepted that the target gives no chance."""
    table = [[0.0] * 12 for _ in range(12)]
    for last in range(12):
        table[last][(last + 1) % 12], table[last][(last + 2) % 12] = 0.75, 0.25
    target = TableTarget.markov(table)
    drafter = bound(Sps(draft="x", draft_length=3), draft, target=target)
    found = decode(
        target,
        drafter,
        PROMPT,
        limits=Limits(max_new_tokens=80),
        sampling=Sampling(temperature=1.0),
        generator=torch.Generator().manual_seed(0),
    )
    steps = [(b - a) % 12 for a, b in pairwise(found.token_ids)]
    assert set(steps) == {1, 2}
