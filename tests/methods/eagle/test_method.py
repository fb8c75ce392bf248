import pytest
import torch
from saved_heads import head_config, random_head, save_heads
from told_heads import FREE

from draftboard.methods import Binding, MethodError, Preflight, Vocabulary, build, parse
from draftboard.methods.eagle import bound
from draftboard.methods.eagle.bound import bound_head, measure_head
from draftboard.methods.eagle.drafter import Pairs
from draftboard.methods.eagle.method import PRESETS, Eagle2, Eagle3
from draftboard.methods.eagle.sizing import HeadCost
from draftboard.methods.engine import GREEDY, Limits, Sampling, decode
from draftboard.methods.engine.cache import TreeCache
from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.samd.method import Samd
from draftboard.testing import FakeClock, RandomDrafter, TableTarget, tiny_model

V = 12
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    return save_heads(tmp_path_factory.mktemp("heads"), vocab=V)


@pytest.fixture
def model():
    return tiny_model(vocab_size=V, dtype="float64", window=256)


@pytest.fixture
def bind(heads):
    def make(target, **changes):
        usual = {"target": target, "vocab_size": V, "logit_width": V, "find_folder": lambda name: heads / name}
        return Binding(**usual | changes)

    return make


def method(name, **settings):
    return build({"method": name, "head": "eagle3" if name == "eagle3" else "eagle", **settings})


def test_published_sizes_by_name():
    for name in ("eagle2", "eagle3"):
        assert PRESETS[name]["library"] == (60, 7, 10)
        assert PRESETS[name]["evaluation"] == (60, 5, 10)
        assert PRESETS[name]["qwen3"] == (32, 8, 4)
    papers = ("paper-7b", "paper-13b", "paper-70b")
    assert [PRESETS["eagle2"][paper] for paper in papers] == [(60, 5, 10), (50, 5, 10), (48, 5, 10)]
    assert [PRESETS["eagle3"][paper][1] for paper in papers] == [7, 7, 7]


def test_the_sizes_in_effect_are_shown():
    def shown(made):
        settings = made.settings()
        return settings["total_token"], settings["depth"], settings["top_k"]

    assert shown(Eagle2()) == ("auto", 5, 10)
    assert shown(Eagle2().with_budget("paper")) == (60, 5, 10)
    assert shown(Eagle3(budget="paper")) == (60, 7, 10)
    assert shown(Eagle3(budget="paper", total_token="auto")) == ("auto", 7, 10)
    assert shown(build({"method": "eagle2", "preset": "qwen3", "depth": 3, "budget": "paper"})) == (32, 3, 4)
    assert shown(Eagle2(shape="chain", depth=4, budget="paper")) == (6, 4, 1)
    inner = parse("samd[eagle2]").with_budget("paper").settings()["auxiliary"]
    assert (inner["method"], inner["total_token"], inner["preset"]) == ("eagle2", 60, "paper-7b")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"method": "eagle", "draft_length": 0}, "draft_length must lie between 1 and 63"),
        ({"method": "eagle", "tree": "mc_sim_7b_64"}, "tree = 'mc_sim_7b_64'"),
        ({"method": "eagle2", "total_token": 1}, "total_token counts the root"),
        ({"method": "eagle2", "total_token": "all"}, "total_token = 'all'"),
        ({"method": "eagle2", "depth": 64}, "depth must lie between 0 and 63"),
        ({"method": "eagle3", "top_k": 0}, "top_k must lie between 1 and 63"),
        ({"method": "eagle3", "draft_vocab": -1}, "draft_vocab be at least 0"),
        ({"method": "eagle3", "head": ""}, "head must be named"),
        ({"method": "eagle2", "top_n": 3}, "did you mean 'top_k'"),
    ],
)
def test_impossible_settings(table, message):
    with pytest.raises(MethodError, match=message):
        build(table)


def test_a_head_is_loaded_once_a_target(model, bind):
    first, second = method("eagle"), method("eagle2", preset="qwen3")
    found = bound_head(first._wanted(), bind(model))
    assert bound_head(second._wanted(), bind(model)) is found
    assert bound_head(method("eagle", draft_vocab=5)._wanted(), bind(model)) is not found
    other = tiny_model(vocab_size=V, dtype="float64", window=256)
    assert bound_head(first._wanted(), bind(other)) is not found
    # Bound without a copy.
    assert found.head._embedding.data_ptr() == model.input_embedding.data_ptr()
    assert found.head._borrowed_rows(torch.float64).data_ptr() == model.output_embedding.data_ptr()


def test_a_smaller_draft_vocabulary_is_the_most_frequent_ids(model, bind):
    """The heads' counts fall with the id; ends of sequence are always among them."""
    whole = bound_head(method("eagle", draft_vocab=4)._wanted(), bind(model, eos_ids=frozenset({11, 99})))
    assert whole.head.target_ids.tolist() == [0, 1, 2, 11]
    part = bound_head(method("eagle3", draft_vocab=5)._wanted(), bind(model))
    assert part.head.target_ids.tolist() == [0, 1, 2, 3, 5]
    assert part.head.lm_head.weight.shape[0] == 5
    # No smaller than that: nothing to do.
    assert len(bound_head(method("eagle3", draft_vocab=99)._wanted(), bind(model)).head.target_ids) == 10


def test_a_draft_vocabulary_needs_counts(tmp_path, model, bind, heads):
    from draftboard.methods.eagle.export import save_head

    save_head(random_head(head_config("eagle", vocab=V)), tmp_path / "bare", record={})
    bare = {"head": str(tmp_path / "bare"), "draft_vocab": 4}
    with pytest.raises(MethodError, match=r"draft_vocab = 4 needs to know how often tokens occur"):
        bound_head(method("eagle", **bare)._wanted(), bind(model))
    borrowed = method("eagle", **bare, counts=str(heads / "eagle"))
    assert bound_head(borrowed._wanted(), bind(model)).head.target_ids.tolist() == [0, 1, 2, 3]


def test_a_head_of_the_other_kind_is_refused(model, bind):
    with pytest.raises(MethodError, match="is a head for the method eagle3, and not for eagle2"):
        bound_head(method("eagle2", head="eagle3")._wanted(), bind(model))
    with pytest.raises(MethodError, match="is a head for the method eagle or eagle2, and not for eagle3"):
        bound_head(method("eagle3", head="eagle")._wanted(), bind(model))


def test_a_target_without_tensors_is_refused(bind):
    with pytest.raises(MethodError, match="eagle2 needs a target whose hidden states"):
        method("eagle2").drafter(bind(TableTarget(lambda text: [0.0] * V)))


@pytest.fixture
def known(heads):
    def make(**changes):
        usual = {
            "target": "tiny",
            "vocabulary": Vocabulary(tokens={str(n): n for n in range(V)}, logit_width=V),
            "vocabulary_of": lambda name: None,
            "hidden": 32,
            "layers": 2,
            "find_folder": lambda name: heads / name,
        }
        return Preflight(**usual | changes)

    return make


def test_preflight(known, monkeypatch):
    for name in ("eagle", "eagle2", "eagle3"):
        method(name, draft_vocab=4).preflight(known())
        parse(f"samd[{name}]")
    with pytest.raises(MethodError, match="another target"):
        method("eagle").preflight(known(hidden=64))
    with pytest.raises(MethodError, match="is a head for the method eagle3"):
        method("eagle2", head="eagle3").preflight(known())
    with pytest.raises(MethodError, match=r"no head for tiny comes with draftboard.*prepare eagle3 --model tiny"):
        Eagle3().preflight(known())


def test_the_bundled_head_of_the_target_is_found(known, model, bind, heads, monkeypatch):
    monkeypatch.setattr("draftboard.methods.eagle.bound.bundled_heads", lambda: ("eagle3", "eagle"))
    monkeypatch.setattr("draftboard.methods.eagle.bound.bundled_head", lambda name: heads / name)
    Eagle2().preflight(known())
    with pytest.raises(MethodError, match="no head for other comes with draftboard"):
        Eagle2().preflight(known(target="other"))
    assert bound_head(Eagle2()._wanted(), bind(model)).head.config.kind == "eagle"
    with pytest.raises(MethodError, match="no head for the target"):
        bound_head(Eagle3()._wanted(), bind(model, fingerprint="f00"))


@pytest.fixture
def checked(model, monkeypatch):
    """Every root output is compared with that of a head which reads all true pairs at once."""
    fresh = tiny_model(vocab_size=V, dtype="float64", window=256)
    done = []
    flush = Pairs.flush
    text = []

    def checking(pairs, tokens, room):
        del text[pairs.stable + 1 :]
        text.extend(tokens)
        outputs = flush(pairs, tokens, room)
        taps = list(pairs.head.config.taps)
        states = fresh.model(torch.tensor([text[:-1]]), output_hidden_states=taps).hidden_states
        features = pairs.head.feature([states[tap] for tap in taps])
        cache = TreeCache(1)
        cache.reserve(len(text))
        whole = pairs.head(features, torch.tensor([text[1:]]), cache=cache)[0]
        torch.testing.assert_close(outputs, whole[-len(outputs) :], atol=1e-5, rtol=1e-5)
        assert pairs.stable == len(text) - 1
        done.append(len(tokens))
        return outputs

    monkeypatch.setattr(Pairs, "flush", checking)
    monkeypatch.setattr("draftboard.methods.eagle.bound.measure_head", lambda *args, **options: FREE)
    return text, done


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", ["eagle", "eagle2", "eagle3", "samd[eagle2]", "samd[eagle3]"])
def test_the_root_output_is_that_of_all_pairs_read_at_once(checked, model, bind, name, sampling):
    text, done = checked
    inner = name.removeprefix("samd[").removesuffix("]")
    made = method(inner)
    if inner != name:
        made = build({"method": "samd", "auxiliary": made, "min_match": 2})
    for budget in ("auto", "paper"):
        text[:] = [PROMPT[0]]
        decode(
            model,
            made.with_budget(budget).drafter(bind(model)),
            PROMPT,
            limits=Limits(max_new_tokens=40),
            sampling=sampling,
            generator=torch.Generator().manual_seed(3),
        )
        assert text[: len(PROMPT)] == PROMPT
    assert len(done) > 20
    # In samd some pairs wait for several steps.
    assert max(done[1:]) > 1


@pytest.mark.parametrize("name", ["eagle", "eagle2", "eagle3"])
def test_turns_do_not_leak_into_each_other(model, bind, name, monkeypatch):
    monkeypatch.setattr("draftboard.methods.eagle.bound.measure_head", lambda *args, **options: FREE)
    made, limits = method(name), Limits(max_new_tokens=30)
    first = decode(model, made.drafter(bind(model)), PROMPT, limits=limits)
    turn = [*PROMPT, *first.token_ids, 7, 7]
    second = decode(model, made.drafter(bind(model)), turn, limits=limits)
    decode(model, RandomDrafter(V), [1, 2, 3], limits=limits)
    for prompt, before in ((turn, second), (PROMPT, first)):
        again = decode(model, made.drafter(bind(model)), prompt, limits=limits)
        assert again.token_ids == before.token_ids
        assert again.trace.accepted == before.trace.accepted
        assert again.trace.nodes == before.trace.nodes


def test_costs_are_relative_to_one_row_of_the_target(model):
    """A clock that ticks once a reading makes every forward cost the same."""
    head = random_head(head_config("eagle", vocab=V))
    head.bind(model.input_embedding, model.output_embedding)
    cost = measure_head(head, model, vocab_size=V, clock=FakeClock(tick_ns=50))
    assert set(cost.root.cost) | set(cost.level.cost) == {1.0}
    assert (cost.root.rows, cost.level.rows) == ((1, 4, 16, 64), (1, 4, 8, 16))
    real = measure_head(head, model, vocab_size=V)
    assert real.level.cost[0] > 0
    assert list(real.root.cost) == sorted(real.root.cost)


def test_a_cost_is_measured_once(model, bind, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "draftboard.methods.eagle.bound.measure_head", lambda *args, **options: seen.append(args) or FREE
    )
    for name in ("eagle", "eagle2", "eagle2"):
        method(name).drafter(bind(model))
    assert len(seen) == 1
    tiny_window = tiny_model(vocab_size=V, dtype="float64", window=3)
    method("eagle", budget="paper").drafter(bind(tiny_window))
    assert len(seen) == 1


def test_a_small_window_can_be_measured():
    target = tiny_model(vocab_size=V, dtype="float64", window=3)
    head = random_head(head_config("eagle", vocab=V))
    head.bind(target.input_embedding, target.output_embedding)
    assert measure_head(head, target, vocab_size=V).root.cost[0] > 0


def test_an_automatic_size_follows_the_curve(model, bind, monkeypatch):
    monkeypatch.setattr("draftboard.methods.eagle.bound.measure_head", lambda *args, **options: FREE)
    sizes = {}
    for name, top in (("flat", 1.0), ("mild", 3.0), ("steep", 20.0)):
        curve = CostCurve(rows=(1, 64), cost=(1.0, top))
        found = decode(
            model, method("eagle2").drafter(bind(model, curve=curve)), PROMPT, limits=Limits(max_new_tokens=60)
        )
        sizes[name] = sum(found.trace.nodes) / len(found.trace)
    assert sizes["flat"] > sizes["mild"] > sizes["steep"]


@pytest.mark.parametrize("name", ["eagle", "eagle2", "eagle3"])
def test_what_a_head_costs_is_measured_once_a_run_and_given_back(name, bind, model, monkeypatch):
    made = method(name)
    found = made.measure(bind(model))
    assert set(found) == {"head_root", "head_level"}
    assert HeadCost.read(found).document() == found
    assert method(name, budget="paper").measure(bind(model)) == {}
    wrapped = Samd(auxiliary=made)
    assert wrapped.measure(bind(model)) == {"auxiliary": found}

    def never(*_, **__):
        raise AssertionError("measured again")

    monkeypatch.setattr(bound, "measure_head", never)
    other = tiny_model(vocab_size=V, dtype="float64", window=256)
    for drafting, known in ((made, found), (wrapped, {"auxiliary": found})):
        drafter = drafting.drafter(bind(other, measured=known))
        assert len(decode(other, drafter, PROMPT, limits=Limits(max_new_tokens=6)).token_ids) == 6


def test_a_head_that_cannot_be_loaded_is_told_when_the_run_begins(bind, model, tmp_path):
    for made in (method("eagle2", budget="paper"), Samd(auxiliary=method("eagle2"))):
        with pytest.raises(MethodError, match="no folder"):
            made.measure(bind(model, find_folder=lambda name: tmp_path / name))
