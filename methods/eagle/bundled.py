"""The heads that come with draftboard, as folders by name. Free of torch."""

from pathlib import Path

__all__ = ["bundled_head", "bundled_heads"]

_ROOT = Path(__file__).parent / "data"


def bundled_heads() -> tuple[str, ...]:
    """Return the names of the heads that are there."""
    return tuple(sorted(path.parent.name for path in _ROOT.glob("*/artifact.json")))


def bundled_head(name: str) -> Path | None:
    """Return the folder of the bundled head of that name, if there is one."""
    return _ROOT / name if name in bundled_heads() else None
