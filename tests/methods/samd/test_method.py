import random

import pytest
import torch

from draftboard.methods import MethodError, Preflight, Vocabulary
from draftboard.methods.artifact import Workshop
from draftboard.methods.autoregressive import Autoregressive
from draftboard.methods.engine import GREEDY, Context, Drafter, Limits, Scores, TokenTree, Verdict, decode
from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.method import Binding, Method
from draftboard.methods.pld import Pld
from draftboard.methods.samd.method import Samd
from draftboard.methods.sps import Sps
from draftboard.methods.token_recycling import TokenRecycling
from draftboard.testing import TableTarget, tiny_model

MARK = 99


class Marking(Drafter):
    """Drafts one token that nothing else drafts, and remembers what it saw."""

    wants_hidden = (3,)
    wants_prompt_logits = True

    def __init__(self, chance=None):
        self.begun, self.asked, self.verdicts = None, 0, []
        self.chances = None if chance is None else [1.0, chance]

    def begin(self, prompt, scores):
        self.begun = list(prompt), scores

    def propose(self, context):
        self.asked += 1
        return TokenTree([context.root, MARK], chances=self.chances)

    def observe(self, verdict):
        self.verdicts.append(verdict)


class Auxiliary:
    """Stands for a method whose drafter the test holds."""

    lossless = True

    def __init__(self, drafter):
        self.inner = drafter
        self.budgets = []

    def with_budget(self, budget):
        self.budgets.append(budget)
        return self

    def drafter(self, binding):
        return self.inner


def bound(method, **changes):
    return method.drafter(Binding(**{"target": None, "vocab_size": 100, "logit_width": 100, **changes}))


def ask(drafter, text, *, room=99, max_nodes=99):
    context = Context(
        tokens=list(text[:-1]), root=text[-1], room=room, max_nodes=max_nodes, sampling=GREEDY, generator=None
    )
    return drafter.propose(context), context.signals


def verdict(tree, emitted, accepted=0):
    scores = Scores(torch.zeros(len(tree), 100))
    return Verdict(tree=tree, path=list(range(accepted + 1)), emitted=emitted, scores=scores)


def longest_match(text):
    """Brute force: the longest suffix that also ends earlier, and where its first occurrence ends."""
    for size in range(len(text) - 1, 0, -1):
        for end in range(size, len(text)):
            if text[end - size : end] == text[-size:]:
                return size, end
    return 0, 0


def test_the_published_rule_chooses_chain_or_auxiliary_by_the_match():
    dice = random.Random(4)
    text = [dice.randrange(3) for _ in range(8)]
    inner = Marking()
    drafter = bound(Samd(auxiliary=Auxiliary(inner), min_match=4, draft_length=6, budget="paper"))
    drafter.begin(text[:-1], None)
    chains = 0
    for _ in range(150):
        before = inner.asked
        tree, signals = ask(drafter, text)
        size, _ = longest_match(text)
        assert signals["match"] == size
        if size >= 4:
            chains += 1
            assert inner.asked == before
            assert "auxiliary" not in signals
            assert MARK not in tree.token_list
            assert tree.is_chain
            assert len(tree) <= 6
        else:
            assert inner.asked == before + 1
            assert signals["auxiliary"] == 1.0
            assert tree.token_list == [text[-1], MARK]
        text.append(dice.randrange(3))
    assert 20 < chains < 140


def test_a_chain_continues_the_first_occurrence():
    pattern = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    text = [*pattern, 20, *pattern, 30, 1, 2, 3, 4, 5]
    drafter = bound(Samd(auxiliary=Auxiliary(Marking()), budget="paper", draft_length=7))
    drafter.begin(text[:-1], None)
    assert ask(drafter, text)[0].token_list == [5, 6, 7, 8, 9, 20, 1]
    assert ask(drafter, text, room=2)[0].token_list == [5, 6, 7]
    assert ask(drafter, text, max_nodes=3)[0].token_list == [5, 6, 7]
    assert ask(drafter, text, room=0)[0].token_list == [5]


@pytest.mark.parametrize(("alpha", "length"), [(4.0, 40), (1.5, 40), (4.0, 10), (0.4, 40)])
def test_without_an_auxiliary_the_match_sets_the_length(alpha, length):
    dice = random.Random(9)
    text = [dice.randrange(4) for _ in range(60)]
    drafter = bound(Samd(auxiliary=None, alpha=alpha, draft_length=length, budget="paper"))
    drafter.begin(text[:-1], None)
    for _ in range(60):
        tree, _ = ask(drafter, text)
        size, end = longest_match(text)
        rows = min(length, 1 + int(alpha * size))
        assert tree.token_list == [text[-1], *text[end : len(text) - 1][: rows - 1]] or size == 0
        assert size > 0 or len(tree) == 1
        text.append(dice.randrange(4))


def test_the_auxiliary_sees_everything():
    inner = Marking()
    drafter = bound(Samd(auxiliary=Auxiliary(inner), min_match=2, budget="paper"))
    assert drafter.wants_hidden == (3,)
    assert drafter.wants_prompt_logits
    scores = Scores(torch.zeros(1, 100))
    drafter.begin([1, 2, 3, 1], scores)
    assert inner.begun == ([1, 2, 3, 1], scores)
    chain, _ = ask(drafter, [1, 2, 3, 1, 2])
    assert MARK not in chain.token_list
    first = verdict(chain, [7])
    drafter.observe(first)
    other, _ = ask(drafter, [1, 2, 3, 1, 2, 7])
    assert MARK in other.token_list
    second = verdict(other, [8])
    drafter.observe(second)
    assert inner.verdicts == [first, second]


def test_the_budget_reaches_the_auxiliary():
    for budget in ("auto", "paper"):
        auxiliary = Auxiliary(Marking())
        bound(Samd(auxiliary=auxiliary, budget=budget))
        assert auxiliary.budgets == [budget]
    changed = Samd().with_budget("paper")
    assert changed.budget == changed.auxiliary.budget == "paper"
    assert changed.auxiliary.tree == "samd-60"


def test_auto_unites_chain_and_auxiliary_to_what_pays():
    curve = CostCurve(rows=(1, 11), cost=(1.0, 2.0))
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    for chance, wins in ((0.01, False), (0.6, True)):
        inner = Marking(chance)
        drafter = bound(Samd(auxiliary=Auxiliary(inner)), curve=curve)
        drafter.begin(text[:-1], None)
        tree, signals = ask(drafter, text)
        assert inner.asked == 1
        assert 3 in tree.token_list
        assert (MARK in tree.token_list) == wins == ("auxiliary" in signals)
    sure = Marking(0.99)
    long = [*range(40), *range(30)]
    drafter = bound(Samd(auxiliary=Auxiliary(sure)), curve=curve)
    drafter.begin(long[:-1], None)
    tree, _ = ask(drafter, long)
    assert sure.asked == 0
    assert tree.token_list == [29, *long[30:]][: len(tree)]
    assert len(tree) > 5
    assert 1 < tree.expected <= len(tree)


def test_an_auxiliary_that_tells_no_chances_is_asked_while_it_pays():
    curve = CostCurve(rows=(1, 11), cost=(1.0, 2.0))
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    inner = Marking()
    drafter = bound(Samd(auxiliary=Auxiliary(inner)), curve=curve)
    drafter.begin(text[:-1], None)
    tree, signals = ask(drafter, text)
    assert tree.token_list == [2, MARK]
    assert signals["auxiliary"] == 1.0
    for _ in range(60):
        tree, _ = ask(drafter, text)
        drafter.observe(verdict(tree, [3]))
    asked = inner.asked
    assert asked < 61
    assert ask(drafter, text)[0].token_list[:2] == [2, 3]
    assert inner.asked == asked


def test_auto_learns_from_chains_that_were_not_drafted():
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    drafter = bound(Samd(auxiliary=Auxiliary(Marking(0.2))), curve=CostCurve(rows=(1, 11), cost=(1.0, 2.0)))
    drafter.begin(text[:-1], None)
    for _ in range(60):
        tree, _ = ask(drafter, text)
        drafter.observe(verdict(tree, [3, 4, 5, 6, 7, 8, 1]))
    assert ask(drafter, text)[0].token_list == [2, 3, 4, 5, 6, 7, 8, 1]
    for _ in range(400):
        tree, _ = ask(drafter, text)
        drafter.observe(verdict(tree, [50]))
    assert MARK in ask(drafter, text)[0].token_list


def test_a_verdict_without_a_question_teaches_nothing():
    """Inside another method a drafter may see steps that it was not asked for."""
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    for method in (Samd(auxiliary=None), Pld()):
        untouched, taught = bound(method), bound(method)
        for drafter in (untouched, taught):
            drafter.begin(text[:-1], None)
            tree, _ = ask(drafter, text)
            drafter.observe(verdict(tree, [3, 4], 0))
        for _ in range(50):
            taught.observe(verdict(TokenTree([5]), [60]))
        assert ask(taught, text)[0].expected == ask(untouched, text)[0].expected


VOCABULARY = Vocabulary(tokens={f"t{index}": index for index in range(100)}, logit_width=100)
OTHER = Vocabulary(tokens={f"u{index}": index for index in range(100)}, logit_width=100)


@pytest.fixture
def corpus(tmp_path):
    """A static automaton as `prepare` leaves it."""
    workshop = Workshop(
        out=tmp_path / "corpus",
        documents=[[10, 11, 12, 13, 14, 15, 16, 17, 18], [], [1, 2, 3, 60, 61]],
        vocab_size=100,
        vocabulary_sha256=VOCABULARY.sha256,
        eos_id=0,
        provenance={"target": "tiny"},
    )
    record = Samd.prepare(workshop)
    assert (record["documents"], record["tokens"], record["target"]) == (2, 14, "tiny")
    return workshop.out


def with_static(corpus, **changes):
    return Samd(**{"static": corpus, "budget": "paper", "min_match": 3, **changes})


def test_a_static_match_must_be_longer_by_the_bias(corpus):
    text = [90, 91, 10, 11, 12, 13, 14]
    drafter = bound(with_static(corpus, auxiliary=Auxiliary(Marking()), static_bias=2))
    drafter.begin(text[:-1], None)
    tree, signals = ask(drafter, text)
    assert tree.token_list == [14, 15, 16, 17, 18, 0]
    assert signals["match"] == 3
    drafter = bound(with_static(corpus, auxiliary=Auxiliary(Marking()), static_bias=3))
    drafter.begin(text[:-1], None)
    assert MARK in ask(drafter, text)[0].token_list


@pytest.mark.parametrize(("bias", "expected"), [(0, [3, 60, 61]), (1, [3, 70, 71]), (2, [3, 70, 71])])
def test_at_equal_length_the_text_itself_wins(corpus, bias, expected):
    """Two tokens match in the text, three in the corpus."""
    text = [2, 3, 70, 71, 1, 2, 3]
    drafter = bound(with_static(corpus, auxiliary=Auxiliary(Marking()), static_bias=bias, min_match=2))
    drafter.begin(text[:-1], None)
    assert ask(drafter, text, room=2)[0].token_list == expected


def test_the_static_pointer_follows_the_text(corpus):
    drafter = bound(with_static(corpus, auxiliary=None, static_bias=0, alpha=1.0))
    drafter.begin([10, 11], None)
    assert ask(drafter, [10, 11, 12])[0].token_list == [12, 13, 14, 15]
    assert ask(drafter, [10, 11, 12])[0].token_list == [12, 13, 14, 15]
    assert ask(drafter, [10, 11, 12, 13, 14])[0].token_list == [14, 15, 16, 17, 18, 0]
    assert ask(drafter, [10, 11, 12, 13, 14, 77, 1])[0].token_list == [1, 2]


def known(vocabulary):
    return Preflight(target="mine", vocabulary=vocabulary, vocabulary_of=lambda name: vocabulary)


def test_a_corpus_of_another_token_table_is_refused(corpus, tmp_path):
    with_static(corpus).preflight(known(VOCABULARY))
    with pytest.raises(MethodError, match=r"was made for tiny, whose token table differs from that of mine; run"):
        with_static(corpus).preflight(known(OTHER))
    with pytest.raises(MethodError, match="is no artifact"):
        with_static(tmp_path).preflight(known(VOCABULARY))
    (corpus / "automaton.safetensors").unlink()
    with pytest.raises(MethodError, match=r"automaton\.safetensors"):
        with_static(corpus).preflight(known(VOCABULARY))


def test_a_corpus_without_text_is_refused(tmp_path):
    workshop = Workshop(out=tmp_path / "x", documents=[[]], vocab_size=9, vocabulary_sha256="", eos_id=0)
    with pytest.raises(MethodError, match="holds no text"):
        Samd.prepare(workshop)


def test_preflight_asks_the_auxiliary():
    with pytest.raises(MethodError, match="sps needs a draft model"):
        Samd(auxiliary=Sps()).preflight(known(VOCABULARY))
    Samd(auxiliary=None).preflight(known(VOCABULARY))


@pytest.mark.parametrize("settings", [{"draft_length": 1}, {"min_match": 0}, {"static_bias": -1}, {"alpha": 0.0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(MethodError, match="samd: draft_length >= 2"):
        Samd(**settings)


def test_a_lossy_auxiliary_does_not_fit():
    class Lossy(Autoregressive):
        lossless = False

    assert issubclass(Lossy, Method)
    with pytest.raises(MethodError, match="the auxiliary must leave verification to the target"):
        Samd(auxiliary=Lossy())


def test_a_repeating_target_is_followed():
    script = [1, 2, 3, 4, 5] * 12
    target = TableTarget.scripted(script, vocab_size=9)
    for method in (Samd(budget="paper"), Samd(auxiliary=None, budget="paper"), Samd()):
        drafter = method.drafter(Binding(target=target, vocab_size=9, logit_width=9))
        found = decode(target, drafter, script[:8], limits=Limits(max_new_tokens=40))
        assert found.token_ids == script[8:48]
        assert sum(found.trace.kept) / len(found.trace) > 4


def test_a_draft_model_inside_is_kept_in_step(model64, greedy):
    """Steps that retrieval served leave the draft model's cache as it was; it then catches up."""
    prompt = [3, 1, 4, 1, 5, 9, 2, 6]
    truth = greedy(model64, prompt, max_new_tokens=60).token_ids
    draft = tiny_model(vocab_size=12, dtype="float64", window=256)
    for budget in ("paper", "auto"):
        method = Samd(auxiliary=Sps(draft="copy", draft_length=3), min_match=3, budget=budget)
        binding = Binding(target=model64, vocab_size=12, logit_width=12, load_model=lambda name: draft)
        found = decode(model64, method.drafter(binding), prompt, limits=Limits(max_new_tokens=60))
        assert found.token_ids == truth
        asked = found.trace.signals["auxiliary"].tolist()
        served = [step for step, value in enumerate(asked[:-1]) if value == 1.0]
        assert served
        assert budget == "auto" or len(served) < len(asked) - 1
        # The draft model is the target: whatever it was asked for is right.
        assert all(found.trace.accepted[step] == found.trace.drafted[step] for step in served)


def test_the_default_auxiliary_is_the_smaller_tree():
    assert Samd().auxiliary == TokenRecycling(tree="samd-60")
