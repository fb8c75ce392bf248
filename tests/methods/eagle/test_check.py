"""Agreement of a head with its target, against closed forms and against chains drafted one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from draftboard.methods.eagle import check
from draftboard.methods.eagle.check import check_head
from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import EagleHead, Head, make_head
from draftboard.methods.engine.loop import decode
from draftboard.methods.engine.model import LanguageModel
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.settings import Limits
from draftboard.methods.errors import MethodError
from draftboard.testing import OracleDrafter, tiny_model

VOCAB = 8


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def config(kind: str, *, width: int, layers: int, **changes: object) -> HeadConfig:
    sizes = {
        "kind": kind,
        "hidden": width,
        "target_hidden": width,
        "vocab": VOCAB,
        "draft_vocab": VOCAB,
        "heads": 2,
        "kv_heads": 1,
        "head_dim": 4,
        "intermediate": 12,
        "taps": (layers,) if kind == "eagle" else (1, 2, 3),
        "own_lm_head": kind == "eagle3",
    }
    return HeadConfig(**{**sizes, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def target() -> LanguageModel:
    return tiny_model(vocab_size=VOCAB, layers=4, seed=5)


def bound(made: HeadConfig, target: LanguageModel, ids: Tensor | None = None, seed: int = 9) -> Head:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = make_head(made, ids)
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    head.bind(target.input_embedding, target.output_embedding)
    return head.eval().requires_grad_(False)


def written(target: LanguageModel, prompt: list[int], count: int) -> list[int]:
    output = decode(target, OracleDrafter([], 1), prompt, limits=Limits(max_new_tokens=count)).token_ids
    return [*prompt, *output]


def one_by_one(head: Head, target: LanguageModel, ids: list[int], start: int) -> tuple[list[int], list[int]]:
    """Draft a chain behind every prefix by full forwards; count tried and accepted by depth."""
    tried, accepted = [0] * check.DEPTHS, [0] * check.DEPTHS
    scores = target.prefill(ids, hidden=head.config.taps, all_logits=True)
    true = head.feature([scores.hidden[index] for index in head.config.taps])
    choices = scores.logits.argmax(-1).tolist()
    for index in range(max(0, start - 1), len(ids) - 1):
        features, tokens = true[: index + 1], ids[1 : index + 2]
        for depth in range(check.DEPTHS):
            outputs = head(features[None], torch.tensor([tokens]))[0]
            draft = int(head.target_ids[head.logits(outputs[-1]).argmax()])
            tried[depth] += 1
            if draft != choices[index + 1 + depth]:
                break
            accepted[depth] += 1
            if index + 2 + depth >= len(ids) or ids[index + 2 + depth] != draft:
                break
            features, tokens = torch.cat([features, head.recycled(outputs[-1:])]), [*tokens, draft]
    return tried, accepted


@pytest.mark.parametrize("kind", ["eagle", "eagle3"])
@pytest.mark.parametrize("start", [0, 6])
@pytest.mark.parametrize("greedy", [True, False])
def test_counts_are_those_of_chains_drafted_one_by_one(
    kind: str, start: int, greedy: bool, target: LanguageModel
) -> None:
    ids = torch.tensor([0, 1, 2, 4, 5, 7]) if kind == "eagle3" else None
    reduced = {"draft_vocab": 6, "norm_output": True} if kind == "eagle3" else {}
    text = torch.randint(0, VOCAB, (60,), generator=torch.Generator().manual_seed(4)).tolist()
    if greedy:
        text = written(target, text[:6], 54)
    deep = 0
    for seed in range(8):
        head = bound(config(kind, width=32, layers=4, **reduced), target, ids, seed)
        found = check_head(head, target, [text], starts=[start])
        tried, accepted = one_by_one(head, target, text, start)
        assert [depth.tried for depth in found.own.depths] == tried
        assert [depth.accepted for depth in found.own.depths] == accepted
        assert found.own.positions == tried[0]
        assert found.own.hits[0] == accepted[0]
        deep += accepted[1]
    assert deep > 0


@dataclass
class _Made:
    """A target of given states whose choices are what a head drafts under some base."""

    head: Head
    base: float
    window: int = 1 << 20

    def prefill(self, ids: Sequence[int], *, hidden: Sequence[int] = (), all_logits: bool = False) -> Scores:
        generator = torch.Generator().manual_seed(len(ids))
        states = torch.randn(len(ids), self.head.config.target_hidden, generator=generator)
        with check._rotating(self.head, self.base):
            outputs = self.head(states[None], torch.tensor([list(ids)]).roll(-1, 1))[0]
        logits = self.head.logits(outputs).roll(1, 0)
        return Scores(logits, dict.fromkeys(hidden, states))


def test_the_base_that_the_head_was_trained_with_is_found(target: LanguageModel) -> None:
    head = bound(config("eagle", width=32, layers=4, rope_theta=5e5), target)
    texts = [torch.randint(0, VOCAB, (300,), generator=torch.Generator().manual_seed(2)).tolist()]
    kept = head.rotary_emb
    found = check_head(head, _Made(head, 10000.0), texts, target_base=2e6)
    assert [(one.base, one.of) for one in found.bases] == [(5e5, "head"), (1e4, "default"), (2e6, "target")]
    assert found.best.base == found.better == 1e4
    assert found.best.top == (1.0, 1.0, 1.0)
    assert found.own.top[0] < 0.95
    assert head.rotary_emb is kept
    same = check_head(head, _Made(head, 5e5), texts, target_base=5e5)
    assert [one.base for one in same.bases] == [5e5, 1e4]
    assert same.better is None
    assert same.best is same.own
    assert same.verdict == "healthy"


def test_a_small_difference_is_not_clear() -> None:
    right = {1.0: torch.zeros(100, dtype=torch.bool), 2.0: torch.zeros(100, dtype=torch.bool)}
    right[2.0][:9] = True
    assert check._clearly_better(right) is None
    right[2.0][:10] = True
    assert check._clearly_better(right) == 2.0
    right[1.0][90:99] = True
    assert check._clearly_better(right) is None


def test_verdicts_and_what_a_chain_accepts() -> None:
    def made(*shares: float) -> check.BaseCheck:
        depths = tuple(check.Depth(tried=100, accepted=round(100 * share)) for share in shares)
        hits = depths[0].accepted
        return check.BaseCheck(base=1e4, of="head", positions=100, hits=(hits, hits, hits), depths=depths)

    found = check.HeadCheck(bases=(made(0.6, 0.5),), texts=1, tokens=101, draftable=1.0, better=None)
    assert found.own.accepted_per_step == pytest.approx(0.6 + 0.6 * 0.5)
    for share, verdict in ((0.5, "healthy"), (0.49, "weak"), (0.25, "weak"), (0.24, "broken"), (0.0, "broken")):
        assert replace(found, bases=(made(share),)).verdict == verdict
    assert check.Depth(tried=0, accepted=0).rate == 0.0


def test_a_head_that_hands_its_feature_on_drafts_the_choice_before(target: LanguageModel) -> None:
    head = bound(config("eagle", width=32, layers=4), target)
    for parameter in head.parameters():
        parameter.zero_()
    assert isinstance(head, EagleHead)
    head.fc.weight[:, 32:] = torch.eye(32)
    text = torch.randint(0, VOCAB, (60,), generator=torch.Generator().manual_seed(3)).tolist()
    choices = target.prefill(text, all_logits=True).logits.argmax(-1)
    repeated = int((choices[1:] == choices[:-1]).sum())
    assert check_head(head, target, [text]).own.hits[0] == repeated > 0


def test_the_share_of_choices_that_can_be_drafted(target: LanguageModel) -> None:
    text = written(target, [1, 2], 40)
    chosen = target.prefill(text, all_logits=True).logits.argmax(-1)[1:]
    ids = chosen.unique()[:-1] if len(chosen.unique()) > 1 else torch.tensor([0])
    head = bound(config("eagle", width=32, layers=4, draft_vocab=len(ids)), target, ids)
    found = check_head(head, target, [text])
    assert found.draftable == pytest.approx(float(torch.isin(chosen, ids).float().mean()))


def test_long_texts_are_read_in_pieces(target: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    head = bound(config("eagle", width=32, layers=4), target)
    text = [index % VOCAB for index in range(50)]
    seen: list[int] = []
    monkeypatch.setattr(check, "WINDOW", 20)
    found = check_head(head, target, [text, [1]], starts=[30, 0], advance=seen.append)
    assert seen == [20, 10]
    assert found.own.positions == 10 + 9
    with pytest.raises(MethodError, match="too short"):
        check_head(head, target, [[1]])
