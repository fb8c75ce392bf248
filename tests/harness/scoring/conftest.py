from collections.abc import Iterator

import pytest

from draftboard.errors import UserError
from draftboard.scoring import SCORERS, registry, require_sandbox
from draftboard.suites import scorers as names


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    about = dict(SCORERS)
    monkeypatch.setattr(registry, "_FUNCTIONS", dict(registry._FUNCTIONS))
    monkeypatch.setattr(registry, "_RUN_CODE", set(registry._RUN_CODE))
    monkeypatch.setattr(names, "_added", dict(names._added))
    yield
    registry._ABOUT.clear()
    registry._ABOUT.update(about)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Code can be run here, shut off from everything."""
    try:
        require_sandbox(True)
    except UserError as error:
        pytest.skip(str(error).splitlines()[0])
