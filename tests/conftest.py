import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def published() -> Callable[[str], Path]:
    """A file or folder of the published data by its path below `DRAFTBOARD_DATA`, where there is any."""

    def find(name: str) -> Path:
        root = os.environ.get("DRAFTBOARD_DATA")
        if not root:
            pytest.skip("DRAFTBOARD_DATA does not name a folder with the published data")
        path = Path(root) / name
        if not path.exists():
            pytest.skip(f"DRAFTBOARD_DATA holds no {name}")
        return path

    return find
