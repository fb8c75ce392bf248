"""The house's own rules: what is installed, what is imported when, and who may import whom."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "harness": "draftboard",
    "methods": "draftboard.methods",
    "suites": "draftboard.suites",
    "leaderboards": "draftboard.leaderboards",
}
HEAVY = {"torch", "transformers", "scipy", "sacrebleu", "datasets", "rouge_score", "numpy"}


def modules() -> dict[str, Path]:
    """Name as installed, and file, of every module of ours."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join([package, *parts])
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def inside(node: ast.AST, *, run: bool) -> Iterator[ast.AST]:
    """Nodes below; with `run`, only what is executed on import."""
    for child in ast.iter_child_nodes(node):
        if run and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if run and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from inside(child, run=run)


def imports(name: str, *, run: bool) -> set[str]:
    """Modules of ours that a module imports; a package's face counts as the package."""
    found: set[str] = set()
    for node in inside(ast.parse(MODULES[name].read_text(encoding="utf-8")), run=run):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            base = node.module or ""
            found |= {inner if (inner := f"{base}.{alias.name}") in MODULES else base for alias in node.names}
    return found


def room(name: str) -> str:
    for package in ("draftboard.methods", "draftboard.suites", "draftboard.leaderboards"):
        if name == package or name.startswith(package + "."):
            return package
    return "draftboard"


def ours(names: set[str]) -> set[str]:
    return {name for name in names if name == "draftboard" or name.startswith("draftboard.")}


def test_every_package_is_installed():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    found = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert set(packages) == found
    assert len(packages) == len(set(packages))


def test_the_top_package_has_no_rooms_of_its_own():
    assert not [name for name in ("methods", "suites", "leaderboards") if (ROOT / "harness" / name).exists()]


def test_packages_with_python_files_have_an_init():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file()


def test_typing_is_marked_in_every_room():
    assert all((ROOT / folder / "py.typed").is_file() for folder in FOLDERS)


def test_what_pyproject_names_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"draftboard": "draftboard.cli:main"}
    assert find_spec("draftboard.cli") is not None
    assert all((ROOT / name).is_file() for name in (project["readme"], *project["license-files"]))


@pytest.mark.parametrize("package", ["draftboard.suites", "draftboard.methods"])
def test_suites_and_methods_import_nothing_of_ours_outside_themselves(package):
    for name in MODULES:
        if room(name) == package:
            for other in ours(imports(name, run=False)):
                assert room(other) == package, f"{name} imports {other}"


def test_leaderboards_import_only_plain_types_of_the_harness():
    allowed = {
        "draftboard.errors",
        "draftboard.files",
        "draftboard.metrics",
        # What a run keeps on disk, traces among it: dataclasses without behaviour.
        "draftboard.records",
        "draftboard.results",
        "draftboard.results_file",
    }
    for name in MODULES:
        if room(name) == "draftboard.leaderboards":
            others = {other for other in ours(imports(name, run=False)) if room(other) != "draftboard.leaderboards"}
            assert others <= allowed, f"{name} imports {others - allowed}"


def test_nothing_imports_the_command_line():
    for name in set(MODULES) - {"draftboard.__main__"}:
        assert "draftboard.cli" not in imports(name, run=False), name


def test_no_file_uses_the_bare_folder_names():
    files = [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
            )
            assert not {name.partition(".")[0] for name in names} & set(FOLDERS), path


def test_no_cycle_between_files():
    graph = {name: ours(imports(name, run=True)) & set(MODULES) - {name} for name in MODULES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())
    assert done == set(MODULES)


# What a command imports, in a process of its own.

PROBE = """
import sys
from draftboard.cli import main
try:
    main({tokens!r})
except SystemExit as ended:
    assert not ended.code, ended.code
import json
print()
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def imported(*tokens: str, code: str = "") -> set[str]:
    source = code or PROBE.format(tokens=list(tokens))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    import json

    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "tokens",
    [
        ("--help",),
        ("run", "--help"),
        ("--version",),
        ("list", "methods"),
        ("list", "suites"),
        ("list", "models"),
        ("list", "metrics"),
        ("show", "{case}"),
        ("render", "{case}", "-o", "{out}"),
        ("show", "{run}"),
        ("render", "{run}", "-o", "{out}"),
    ],
)
def test_reading_and_listing_need_no_torch(tokens, tmp_path, stored_run):
    places = {"{case}": ROOT / "tests" / "data" / "12-ties.json", "{out}": tmp_path / "site", "{run}": stored_run}
    found = imported(*(str(places.get(token, token)) for token in tokens))
    # Percentiles over all tokens of a run are numpy's, and Parquet is written with it.
    numbers = "{run}" in tokens or "render" in tokens
    assert not found & (HEAVY - {"numpy"} if numbers else HEAVY)
    # The repository root is the working folder: nothing of ours may come in under its bare name.
    assert not found & set(FOLDERS)


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory):
    """A finished run, written through the product's records without a model."""
    import json

    import msgspec

    from draftboard.records import Cell, SampleRecord, Turn
    from draftboard.store import create_run, open_cells

    folder = tmp_path_factory.mktemp("stored") / "run"
    plan = {
        "model": "tiny",
        "suites": [{"name": "s", "samples": 1, "content_hash": "f" * 64}],
        "methods": [{"label": "autoregressive", "method": "autoregressive", "settings": {}}],
        "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
        "max_new_tokens": 8,
        "seed": 0,
        "repeats": 1,
        "dtype": "auto",
        "device": "auto",
        "template": "auto",
        "warmup": "auto",
        "profile": False,
    }
    sample = SampleRecord(key="s/1", suite="s", sample_id="1", domain="qa", category="qa", turns=["?"])
    curve = {"rows": [1, 2], "cost": [1.0, 1.1], "one_row_s": 0.1}
    create_run(folder, plan, {"hardware": "here", "cost_curve": curve}, [sample])
    turn = Turn(
        prompt_tokens=1,
        prompt_sha256="p",
        token_ids=[1, 2],
        text="x",
        finish="length",
        prefill_ns=1,
        first_ns=1,
        end_ns=2,
        cpu_ns=2,
        first_cpu_ns=1,
        steps={
            name: [1]
            for name in ("drafted", "nodes", "accepted", "kept", "draft_ns", "verify_ns", "other_ns", "end_ns")
        },
    )
    with open_cells(folder) as cells:
        cells.append(msgspec.json.encode(Cell(method="autoregressive", sample="s/1", turns=[turn])))
    assert json.loads((folder / "plan.json").read_text())["schema"] == 1
    return folder


def test_importing_the_light_packages_needs_no_torch():
    light = ("suites", "leaderboards", "methods", "testing", "results", "metrics", "options", "plan", "store")
    code = f"import sys, json, {', '.join(f'draftboard.{name}' for name in light)}\n"
    found = imported(code=code + "print(json.dumps(sorted(sys.modules)))")
    assert not {name.partition(".")[0] for name in found} & (HEAVY - {"numpy"})


def test_importing_every_module_imports_no_bare_name():
    code = "import sys, json, importlib\nfor name in {names}: importlib.import_module(name)\n"
    code += "print(json.dumps(sorted(name for name in sys.modules if '.' not in name)))"
    found = imported(code=code.format(names=[name for name in MODULES if name != "draftboard.pytest_plugin"]))
    assert "torch" in found
    assert not found & set(FOLDERS)
