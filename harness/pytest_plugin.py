"""The pytest plugin: small runs inside tests, and their times among pytest-benchmark's.

It is loaded in every pytest session of an environment that draftboard is installed in, so that everything beyond
pytest itself is imported only when a test asks for a run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from draftboard.errors import UserError

if TYPE_CHECKING:
    from draftboard.pytest_runs import Models
    from draftboard.run_result import RunResult

__all__ = ["PlanRunner"]

_MARK = "draftboard"
_RESULTS = pytest.StashKey["list[RunResult]"]()
_LONGEST = 80
"""Characters of a test's name in the name of a folder."""


class PlanRunner:
    """What `draftboard_run` and its kin give: called with settings, it runs them and returns the result."""

    def __init__(
        self,
        *,
        models: Models,
        new_folder: Callable[[], Path],
        keep: Callable[[RunResult], None] = lambda result: None,
        defaults: tuple[Mapping[str, Any], ...] = (),
        record: Callable[[RunResult], None] = lambda result: None,
    ) -> None:
        """`keep` is given every result, `record` only one whose cells have not failed. `defaults`: of marks, the
        outermost first; a plan file stands in them as `plan`."""
        self._models, self._new_folder, self._keep = models, new_folder, keep
        self._defaults, self._record = defaults, record

    def __call__(self, plan: str | os.PathLike[str] | None = None, /, **settings: Any) -> RunResult:
        """Run a plan file, or what the settings say, or both; a setting that is given here wins.

        Settings are those of a plan file (docs/running.md), with `prompts` and `allow_failed` besides. What is wrong
        with them fails the test with its message; failed cells raise FailedCells unless `allow_failed`.
        """
        __tracebackhide__ = True
        from draftboard.methods import MethodError
        from draftboard.pytest_runs import layered, plan_of, run_in
        from draftboard.suites import SuiteError

        said = layered([*self._defaults, {"plan": plan, **settings}])
        file, allow_failed = said.pop("plan", None), said.pop("allow_failed", False)
        told = ""
        try:
            made = plan_of(said, file)
            result = run_in(self._new_folder(), made, self._models, allow_failed=bool(allow_failed), keep=self._keep)
            self._record(result)
        except (UserError, SuiteError, MethodError) as error:
            told = str(error)
        if told:
            pytest.fail(told)
        return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--draftboard-out`."""
    parser.getgroup("draftboard").addoption(
        "--draftboard-out",
        metavar="DIR",
        help="keep the runs of draftboard_run in this folder, one folder a test (default: in the test's tmp_path)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, and the fixture that needs pytest-benchmark."""
    config.addinivalue_line(
        "markers", f"{_MARK}(plan=None, **settings): defaults of draftboard_run in this test, class or module"
    )
    known = config.pluginmanager.hasplugin("benchmark")
    config.pluginmanager.register(_WithBenchmark() if known else _WithoutBenchmark(), "draftboard-benchmark")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Put the tables of its runs behind a failed test."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and report.failed:
        for result in item.stash.get(_RESULTS, ()):
            report.sections.append((f"draftboard run in {result.path}", result.show(headline_only=True)))


@pytest.fixture(scope="session")
def _draftboard_models() -> Iterator[Models]:
    from draftboard.pytest_runs import Models

    models = Models()
    yield models
    models.drop()


@pytest.fixture(scope="session")
def draftboard_session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _draftboard_models: Models
) -> PlanRunner:
    """Run plans in fixtures of a module or the session, whose result several tests then look at. Knows no marks."""

    def new_folder() -> Path:
        kept = _kept(request.config, "session")
        return tmp_path_factory.mktemp("draftboard") / "run" if kept is None else kept

    return PlanRunner(models=_draftboard_models, new_folder=new_folder)


@pytest.fixture
def draftboard_run(request: pytest.FixtureRequest, tmp_path: Path, _draftboard_models: Models) -> PlanRunner:
    """Run a plan inside this test: `draftboard_run(model=…, suite=…, methods=[…])` returns a RunResult."""
    return _runner(request, tmp_path, _draftboard_models)


class _WithBenchmark:
    """Fixtures where pytest-benchmark is at work."""

    @pytest.fixture
    def draftboard_benchmark(
        self, request: pytest.FixtureRequest, tmp_path: Path, _draftboard_models: Models, benchmark: Any
    ) -> PlanRunner:
        """`draftboard_run` whose times pytest-benchmark keeps, one benchmark a method."""

        def record(result: RunResult) -> None:
            from draftboard.pytest_bridge import record_run

            record_run(benchmark, result, request.node.nodeid)

        return _runner(request, tmp_path, _draftboard_models, record)


class _WithoutBenchmark:
    """Fixtures where it is not installed, or switched off with `-p no:benchmark`."""

    @pytest.fixture
    def draftboard_benchmark(self) -> PlanRunner:
        """Fail with what to do."""
        pytest.fail("draftboard_benchmark needs pytest-benchmark: pip install 'pytest-benchmark>=5'", pytrace=False)


def _runner(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    models: Models,
    record: Callable[[RunResult], None] = lambda result: None,
) -> PlanRunner:
    results = request.node.stash.setdefault(_RESULTS, [])

    def new_folder() -> Path:
        kept = _kept(request.config, request.node.nodeid)
        return _free(tmp_path / "draftboard") if kept is None else kept

    return PlanRunner(
        models=models, new_folder=new_folder, keep=results.append, defaults=_marked(request.node), record=record
    )


def _marked(node: pytest.Item) -> tuple[Mapping[str, Any], ...]:
    """The defaults that marks give, the nearest mark last."""
    found = []
    for mark in node.iter_markers(_MARK):
        if len(mark.args) > 1:
            pytest.fail("@pytest.mark.draftboard takes one plan file, and settings by name", pytrace=False)
        found.append({"plan": mark.args[0] if mark.args else None, **mark.kwargs})
    return tuple(reversed(found))


def _kept(config: pytest.Config, test: str) -> Path | None:
    """A new folder for a run of that test below `--draftboard-out`; None where runs are not kept."""
    out = config.getoption("draftboard_out", None)
    if not out:
        return None
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.")
    if len(name) > _LONGEST:
        # What tells two parameters of one test apart may stand in the part that is cut.
        name = f"{name[:_LONGEST]}-{crc32(test.encode('utf-8', 'surrogatepass')):08x}"
    return _free(config.invocation_params.dir / Path(out).expanduser() / (name or "test"))


def _free(path: Path) -> Path:
    """Make the folder, with a number behind its name where runs stand there already."""
    number = 1
    while True:
        folder = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if path.parent.is_file():
                raise UserError("is a file, not a folder for runs", where=str(path.parent)) from None
            number += 1
        except OSError as error:
            raise UserError(f"cannot be made: {error.strerror or error}", where=str(folder)) from error
        else:
            return folder
