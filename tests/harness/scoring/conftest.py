import os
from collections.abc import Callable, Iterator
from pathlib import Path

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


@pytest.fixture
def published() -> Callable[[str], Path]:
    """A file of the published data by its path below `DRAFTBOARD_DATA`, where there is any."""

    def find(name: str) -> Path:
        root = os.environ.get("DRAFTBOARD_DATA")
        if not root:
            pytest.skip("DRAFTBOARD_DATA does not name a folder with the published data")
        path = Path(root) / name
        if not path.is_file():
            pytest.skip(f"DRAFTBOARD_DATA holds no {name}")
        return path

    return find


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Code can be run here, shut off from everything."""
    try:
        require_sandbox(True)
    except UserError as error:
        pytest.skip(str(error).splitlines()[0])
