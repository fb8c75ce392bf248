"""Suites by name, and suites that others bring."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import draftboard.suites
from draftboard.suites import (
    Sample,
    Suite,
    SuiteError,
    describe_suites,
    load_suite,
    register_suite,
    registry,
    settings_of,
    suite_names,
)


@pytest.fixture(autouse=True)
def _own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_entry_points", dict)


def small(path: str | None = None) -> Suite:
    """Two words.

    And more that no list shows.
    """
    sample = Sample(sample_id=path or "1", suite="small", domain="d", category="c", turns=("a",))
    return Suite(name="small", samples=(sample,), content_hash="0", source="small")


BUILT_IN = (
    "mini", "spec_bench", "speed_bench", "mmlu", "mmlu_80", "gsm8k", "ntrex_de_en", "scitldr", "nq_open", "humaneval",
    "jsonl",
)  # fmt: skip


def test_the_built_in_suites_are_described() -> None:
    assert suite_names() == BUILT_IN
    described = describe_suites()
    assert [info.usage for info in described] == [
        "mini",
        "spec_bench[@PATH]",
        "speed_bench[/VARIANT]@PATH",
        "mmlu[/VARIANT][@PATH]",
        "mmlu_80[/VARIANT][@PATH]",
        "gsm8k[@PATH]",
        "ntrex_de_en[@PATH]",
        "scitldr[@PATH]",
        "nq_open[@PATH]",
        "humaneval[@PATH]",
        "jsonl@PATH",
    ]
    assert all(info.description and info.licence and "\n" not in info.description for info in described)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("spec-bench", "did you mean spec_bench?"),
        ("Mini", "did you mean mini?"),
        ("zzz", f"unknown suite 'zzz'; known: {', '.join(BUILT_IN)}"),
        ("", "unknown suite ''"),
        ("questions.jsonl", "use --suite jsonl@questions.jsonl"),
        ("hf://openai/gsm8k", "such as --suite gsm8k@hf://openai/gsm8k"),
        ("rows.parquet", "use --suite jsonl@rows.parquet"),
        ("@questions.jsonl", "unknown suite ''"),
        ("jsonl", "jsonl needs a file"),
        ("jsonl@", "no path after the @"),
        ("spec_bench@", "no path after the @"),
        ("mini@somewhere", "mini takes no path"),
        ("mini/letter", "mini has no variants"),
        ("mmlu/leter@x", "mmlu has no variant 'leter'; did you mean letter?"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_advice(spec: str, expected: str) -> None:
    with pytest.raises(SuiteError, match=re.escape(expected)):
        load_suite(spec)


def test_which_settings_a_suite_reads() -> None:
    assert settings_of("spec_bench@x") == {"qa_references"}
    assert settings_of("mmlu/letter") == {"shots"}
    assert settings_of("gsm8k") == frozenset()
    with pytest.raises(SuiteError, match="unknown suite"):
        settings_of("gsm9k")


def test_a_path_may_hold_an_at_sign(tmp_path: Path) -> None:
    path = tmp_path / "a@b.jsonl"
    path.write_text('{"id": 1, "prompt": "x"}')
    assert load_suite(f"jsonl@{path}").source == "a@b.jsonl"


def test_a_registered_suite_is_listed_and_loaded() -> None:
    register_suite("small", licence="CC0")(small)
    assert suite_names() == (*BUILT_IN, "small")
    info = describe_suites()[-1]
    assert (info.usage, info.description, info.licence) == ("small[@PATH]", "Two words.", "CC0")
    assert load_suite("small").samples[0].sample_id == "1"
    assert load_suite("small@place").samples[0].sample_id == "place"


def test_names_are_not_taken_twice_except_by_the_same_file() -> None:
    register_suite("small")(small)
    register_suite("small", description="again")(small)
    assert describe_suites()[-1].description == "again"
    with pytest.raises(SuiteError, match="already is a suite named small"):
        register_suite("small")(lambda path: small())
    with pytest.raises(SuiteError, match="already is a suite named mini"):
        register_suite("mini")(small)


@pytest.mark.parametrize("name", ["", "a@b", "a b", "a\n", "a/b"])
def test_names_that_cannot_be_written_are_refused(name: str) -> None:
    with pytest.raises(SuiteError, match="cannot name a suite"):
        register_suite(name)


def test_a_loader_that_returns_something_else() -> None:
    register_suite("odd")(lambda path: [path])  # type: ignore[arg-type,return-value]
    with pytest.raises(SuiteError, match="returned list, not a Suite"):
        load_suite("odd")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    (tmp_path / "plain_suite.py").write_text(
        '"""A plugin."""\n'
        "from draftboard.suites import Sample, Suite\n\n"
        "def load(path):\n"
        '    """Plain."""\n'
        '    sample = Sample(sample_id="1", suite="plain", domain="d", category="c", turns=("a",))\n'
        '    return Suite(name="plain", samples=(sample,), content_hash="0", source="plain")\n\n'
        "number = 3\n"
    )
    (tmp_path / "decorated_suite.py").write_text(
        "from draftboard.suites import register_suite\nfrom plain_suite import load as _load\n\n"
        '@register_suite("plugged", description="Decorated.", licence="CC0", path="required")\n'
        "def load(path):\n    return _load(path)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("plain_suite", "decorated_suite"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def offer(value: str) -> None:
        point = EntryPoint(name="plugged", value=value, group=registry.GROUP)
        monkeypatch.setattr(registry, "_entry_points", lambda: {"plugged": point})

    return offer


@pytest.mark.parametrize(
    ("value", "usage", "description"),
    [
        ("plain_suite:load", "plugged[@PATH]", "Plain."),
        ("decorated_suite:load", "plugged@PATH", "Decorated."),
    ],
)
def test_an_entry_point_is_imported_only_when_needed(
    plugins: Callable[..., None], value: str, usage: str, description: str
) -> None:
    plugins(value)
    assert "plugged" in suite_names()
    assert value.partition(":")[0] not in sys.modules
    assert load_suite("plugged@x").name == "plain"
    info = describe_suites()[-1]
    assert (info.name, info.usage, info.description) == ("plugged", usage, description)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:load", "No module named 'no_such_module'"),
        ("plain_suite:absent", "absent"),
        ("plain_suite:number", "is no loader"),
    ],
)
def test_a_broken_entry_point_harms_only_itself(plugins: Callable[..., None], value: str, reason: str) -> None:
    plugins(value)
    with pytest.raises(SuiteError, match=reason):
        load_suite("plugged")
    assert reason in describe_suites()[-1].description
    assert load_suite("mini").counts


def test_the_example_of_the_page_works() -> None:
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "docs/suites.md", "exec"), {})
    assert load_suite("greetings").counts == {"chat": 1}


def test_the_questions_of_the_page_are_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "q.jsonl").write_text(lines, encoding="utf-8")
    suite = load_suite(f"jsonl@{tmp_path / 'q.jsonl'}")
    assert [sample.scorer for sample in suite.samples] == ["qa", "bleu", None]


def test_suites_stay_light_and_alone() -> None:
    program = (
        "import sys; import draftboard.suites as s; s.describe_suites(); s.load_suite('mini');"
        "print(*sorted(name for name in sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    assert "draftboard.suites.mini" in modules
    heavy = {"torch", "transformers", "scipy", "sacrebleu", "datasets", "pyarrow", "numpy", "huggingface_hub"}
    assert not heavy & modules
    ours = {name for name in modules if name.startswith("draftboard.") and "suites" not in name}
    assert ours <= {"draftboard.errors"}  # the package above, which knows nothing of us


def test_the_face_is_complete() -> None:
    assert all(hasattr(draftboard.suites, name) for name in draftboard.suites.__all__)
