import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, Literal

import pytest

from draftboard.methods import (
    Method,
    MethodError,
    build,
    load_plugin,
    method_class,
    method_names,
    parse,
    register,
    registry,
)
from draftboard.methods.autoregressive import Autoregressive
from draftboard.methods.eagle.method import Eagle, Eagle2, Eagle3
from draftboard.methods.engine import RootOnly
from draftboard.methods.pld import Pld
from draftboard.methods.samd.method import Samd
from draftboard.methods.sps import Sps
from draftboard.methods.token_recycling import TokenRecycling

BUILT_IN = {
    "autoregressive": Autoregressive,
    "pld": Pld,
    "token_recycling": TokenRecycling,
    "samd": Samd,
    "sps": Sps,
    "eagle": Eagle,
    "eagle2": Eagle2,
    "eagle3": Eagle3,
}

PLUGIN = """
from dataclasses import dataclass

from draftboard.methods import Method, register
from draftboard.methods.engine import RootOnly


@register("{name}")
@dataclass(frozen=True, slots=True, kw_only=True)
class {cls}(Method):
    strength: int = 3

    def drafter(self, binding):
        return RootOnly()
"""


@pytest.fixture(autouse=True)
def _as_before():
    """What a test registers is gone after it."""
    known, modules = dict(registry._registered), set(sys.modules)
    yield
    registry._registered.clear()
    registry._registered.update(known)
    for name in set(sys.modules) - modules:
        if name.startswith("draftboard_plugin_"):
            del sys.modules[name]


def plugin(folder, text, name="mine.py"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper(Method):
    """A wrapper that must be given its inside."""

    inside: ClassVar[str | None] = "inner"
    inner: Method
    mode: Literal["a", "b"] = "a"

    def drafter(self, binding):
        return RootOnly()


def test_every_built_in_method_is_there():
    names = method_names()
    assert names[: len(BUILT_IN)] == list(BUILT_IN)
    for name, cls in BUILT_IN.items():
        assert method_class(name) is cls
        assert cls.name == name
        assert cls.about
        assert cls.lossless
        assert isinstance(parse(name), cls)


def test_naming_methods_imports_no_torch():
    code = (
        "import sys; import draftboard.methods as m; import draftboard.testing;"
        "[m.method_class(n) for n in m.method_names()]; m.parse('samd[pld]').settings();"
        "print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("notation", "method", "written"),
    [
        ("pld", Pld(), "pld"),
        (" pld ", Pld(), "pld"),
        ("samd", Samd(), "samd[token_recycling]"),
        ("samd[token_recycling]", Samd(), "samd[token_recycling]"),
        ("samd[none]", Samd(auxiliary=None), "samd[none]"),
        ("samd[ pld ]", Samd(auxiliary=Pld()), "samd[pld]"),
        ("samd[samd[none]]", Samd(auxiliary=Samd(auxiliary=None)), "samd[samd[none]]"),
        ("samd[samd]", Samd(auxiliary=Samd()), "samd[samd[token_recycling]]"),
    ],
)
def test_notation_nests_and_comes_back(notation, method, written):
    assert parse(notation) == method
    assert method.notation() == written
    assert parse(written) == method


@pytest.mark.parametrize("notation", ["", "  ", "[pld]", "samd[pld", "samd]pld[", "samd[pld]x", "a b", "samd[]"])
def test_what_is_no_notation_is_refused(notation):
    with pytest.raises(MethodError, match=r"is not a method; write name or name\[inner\]"):
        parse(notation)


def test_more_methods_in_each_other_than_mean_anything_are_refused():
    with pytest.raises(MethodError, match="more than 6 methods in each other"):
        parse("samd[" * 60 + "pld" + "]" * 60)
    table = {"method": "samd"}
    for _ in range(60):
        table = {"method": "samd", "auxiliary": table}
    with pytest.raises(MethodError, match="more than 6 methods in each other"):
        build(table)


@pytest.mark.parametrize(
    ("name", "near"), [("smad", "samd"), ("token-recycling", "token_recycling"), ("samd[pdl]", "pld")]
)
def test_an_unknown_name_gets_the_nearest(name, near):
    with pytest.raises(MethodError, match=f"did you mean '{near}'") as caught:
        parse(name)
    assert all(known in str(caught.value) for known in BUILT_IN)


def test_a_name_like_nothing_gets_the_list_alone():
    with pytest.raises(MethodError, match="there is no method 'zzzzzz'") as caught:
        parse("zzzzzz")
    assert "did you mean" not in str(caught.value)
    assert "token_recycling" in str(caught.value)


def test_a_method_that_wraps_nothing_is_refused_brackets():
    with pytest.raises(MethodError, match=r"pld wraps no other method, so pld\[samd\] means nothing"):
        parse("pld[samd]")


def test_a_wrapper_that_needs_its_inside():
    register("wrapper")(Wrapper)
    assert parse("wrapper[pld]") == Wrapper(inner=Pld())
    assert parse("wrapper[wrapper[pld]]").notation() == "wrapper[wrapper[pld]]"
    with pytest.raises(MethodError, match="wrapper needs inner; set it"):
        parse("wrapper")
    with pytest.raises(MethodError, match=r"wrapper cannot do without a method inside"):
        parse("wrapper[none]")
    assert build({"method": "wrapper[pld]", "inner": {"method": "pld", "max_ngram": 2}, "mode": "b"}) == Wrapper(
        inner=Pld(max_ngram=2), mode="b"
    )
    with pytest.raises(MethodError, match=r"inner takes a method, not 'none'|there is no method 'none'"):
        build({"method": "wrapper[pld]", "inner": "none"})


def test_a_table_sets_what_it_names():
    assert build({"method": "pld", "max_ngram": 2, "budget": "paper"}) == Pld(max_ngram=2, budget="paper")
    assert build({"method": "samd", "alpha": 3}) == Samd(alpha=3.0)
    assert build({"method": "samd", "auxiliary": "pld"}) == Samd(auxiliary=Pld())
    assert build({"method": "samd", "auxiliary": "none"}) == Samd(auxiliary=None)
    assert build({"method": "samd[pld]", "min_match": 7}) == Samd(auxiliary=Pld(), min_match=7)
    nested = {"method": "samd", "auxiliary": {"method": "token_recycling", "prompt_rows": 4}}
    assert build(nested) == Samd(auxiliary=TokenRecycling(prompt_rows=4))
    assert build({"method": "samd", "static": "corpus/made"}) == Samd(static=Path("corpus/made"))
    assert build({"method": "pld"}) == Pld()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"max_ngram": 2}, 'a method table needs method = "name"'),
        ({"method": 3}, 'a method table needs method = "name"'),
        ({"method": "pld", "max_gram": 2}, "pld has no setting 'max_gram' — did you mean 'max_ngram'"),
        ({"method": "pld", "zzz": 2}, "pld has no setting 'zzz'.*Settings: max_ngram, draft_length, budget"),
        ({"method": "autoregressive", "x": 1}, "Settings: none"),
        ({"method": "pld", "max_ngram": "2"}, "max_ngram = '2': Expected `int`, got `str`"),
        ({"method": "pld", "max_ngram": 2.5}, "max_ngram = 2.5: Expected `int`, got `float`"),
        ({"method": "pld", "max_ngram": True}, "max_ngram = True"),
        ({"method": "pld", "budget": "large"}, "budget = 'large'"),
        ({"method": "pld", "max_ngram": 0}, "must be at least 1"),
        ({"method": "samd", "static": 3}, "static = 3"),
        ({"method": "samd", "alpha": float("nan")}, "alpha > 0"),
        ({"method": "samd", "alpha": float("inf")}, "alpha > 0"),
        ({"method": "samd", "auxiliary": 3}, "auxiliary takes a method, not 3"),
        ({"method": "samd", "auxiliary": "pdl"}, "did you mean 'pld'"),
        ({"method": "samd", "auxiliary": {"method": "pld", "max_gram": 1}}, "auxiliary.*pld has no setting"),
        ({"method": "samd", "auxiliary": {"max_ngram": 1}}, "auxiliary.*needs method"),
    ],
)
def test_a_wrong_setting_is_named(table, message):
    with pytest.raises(MethodError, match=message) as caught:
        build(table, where="plan.toml, method 2")
    if "auxiliary takes" not in message and "did you mean 'pld'" not in message:
        assert str(caught.value).startswith("plan.toml, method 2")


@pytest.mark.parametrize(
    "method",
    [
        Autoregressive(),
        Pld(max_ngram=2, budget="paper"),
        TokenRecycling(tree="samd-60", prompt_rows=3),
        Samd(),
        Samd(auxiliary=None, alpha=2.5),
        Samd(auxiliary=Samd(auxiliary=Pld(draft_length=4)), budget="paper"),
        Sps(draft="small", length="heuristic", drafts="greedy"),
    ],
    ids=lambda method: method.notation(),
)
def test_settings_make_the_method_again(method):
    settings = method.settings()
    assert build({"method": method.name, **settings}) == method
    assert all(isinstance(key, str) for key in settings)


def test_a_stored_path_names_no_folder():
    assert Samd(static=Path("/home/someone/corpus")).settings()["static"] == "corpus"


def test_a_budget_reaches_everything_inside():
    changed = Samd(auxiliary=Samd(auxiliary=Pld())).with_budget("paper")
    assert changed.budget == changed.auxiliary.budget == changed.auxiliary.auxiliary.budget == "paper"
    assert Autoregressive().with_budget("paper") == Autoregressive()


def test_a_plug_in_registers_its_method(tmp_path):
    load_plugin(plugin(tmp_path, PLUGIN.format(name="mine", cls="Mine")))
    assert "mine" in method_names()
    assert build({"method": "mine", "strength": 5}).settings() == {"strength": 5}
    assert parse("samd[mine]").notation() == "samd[mine]"


def test_a_plug_in_may_be_loaded_twice(tmp_path):
    path = plugin(tmp_path, PLUGIN.format(name="mine", cls="Mine"))
    load_plugin(path)
    load_plugin(path)
    assert method_names().count("mine") == 1


def test_two_plug_ins_cannot_share_a_name(tmp_path):
    """Not even when file and class are called the same."""
    text = PLUGIN.format(name="mine", cls="Mine")
    load_plugin(plugin(tmp_path / "a", text))
    first = method_class("mine")
    with pytest.raises(MethodError, match=r"b/mine\.py.*a method named 'mine' exists already"):
        load_plugin(plugin(tmp_path / "b", text))
    assert method_class("mine") is first


def test_a_plug_in_cannot_take_a_built_in_name(tmp_path):
    with pytest.raises(MethodError, match="a method named 'pld' exists already; choose another name for Mine"):
        load_plugin(plugin(tmp_path, PLUGIN.format(name="pld", cls="Mine")))
    assert method_class("pld") is Pld


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", r"registers no method.*decorate one with @register"),
        ("x = 1\nraise RuntimeError('no luck')\n", r"mine\.py, line 2: RuntimeError: no luck"),
        ("import sys\nsys.exit(0)\n", r"mine\.py, line 2: SystemExit: 0"),
        ("import not_there_at_all\n", "line 1: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("def f(:\n", "SyntaxError"),
        (
            "from draftboard.methods import Method, register\n@register('lacking')\nclass Lacking(Method):\n    pass\n",
            r"line 2: lacking: Lacking lacks drafter\(\)",
        ),
        (
            "from draftboard.methods import register\n@register('odd')\nclass Odd:\n    pass\n",
            "a method is a class derived from draftboard.methods.Method",
        ),
        ("from draftboard.methods import register\nregister('no good')\n", "'no good' cannot name a method"),
    ],
)
def test_a_plug_in_that_fails_says_where(tmp_path, text, message):
    before = dict(registry._registered)
    with pytest.raises(MethodError, match=message):
        load_plugin(plugin(tmp_path, text))
    assert registry._registered == before


def test_a_plug_in_that_fails_leaves_nothing_behind(tmp_path):
    text = PLUGIN.format(name="half", cls="Half") + "\nraise ValueError('later')\n"
    with pytest.raises(MethodError, match=r"line \d+: ValueError: later"):
        load_plugin(plugin(tmp_path, text))
    assert "half" not in method_names()
    load_plugin(plugin(tmp_path, PLUGIN.format(name="half", cls="Half")))
    assert "half" in method_names()


def test_a_plug_in_that_is_no_python_file(tmp_path):
    with pytest.raises(MethodError, match=r"gone\.py is not a file"):
        load_plugin(tmp_path / "gone.py")
    with pytest.raises(MethodError, match="is not a file"):
        load_plugin(tmp_path)
    with pytest.raises(MethodError, match=r"its name must end in \.py"):
        load_plugin(plugin(tmp_path, "x = 1", name="mine.txt"))


@pytest.mark.parametrize("name", ["", "none", "a[b]", "a b", "-x", "a/b"])
def test_a_name_must_be_writable_in_notation(name):
    with pytest.raises(MethodError, match="cannot name a method"):
        register(name)


def entry(name, load):
    return SimpleNamespace(name=name, load=load, dist=SimpleNamespace(name="their-package"))


def test_methods_come_from_installed_packages(monkeypatch):
    class Theirs(Autoregressive):
        pass

    def broken():
        raise ImportError("no module named cuda_kernels")

    entries = [entry("theirs", lambda: Theirs), entry("broken", broken)]

    def entry_points(*, group, name=None):
        assert group == "draftboard.methods"
        return [found for found in entries if name in (None, found.name)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert method_names() == [*BUILT_IN, "broken", "theirs"]
    assert type(parse("theirs")) is Theirs
    with pytest.raises(MethodError, match="method 'broken' of their-package does not load: ImportError: no module"):
        parse("broken")


def test_fields_that_hold_mutable_defaults_work():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Listing(Method):
        sizes: tuple[int, ...] = field(default=(1, 2))

        def drafter(self, binding):
            return RootOnly()

    register("listing")(Listing)
    assert Listing().settings() == {"sizes": [1, 2]}
    assert build({"method": "listing", "sizes": [3, 4]}).sizes == (3, 4)
