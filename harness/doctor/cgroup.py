"""What a container grants of processor time, and how often it made its processes wait.

A limit may be set on any group above the process's own, so that all of them are read, version 2 and version 1 alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["Throttled", "granted_cores", "throttled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """Scheduling periods in which the group had used up its quota, and how long it then waited; both only grow."""

    periods: int
    waited_s: float


def granted_cores(root: Path) -> float | None:
    """Return the smallest quota over all groups of this process, in cores; None without one."""
    found = [cores for folder in _folders(root) if (cores := _quota(folder)) is not None]
    return min(found, default=None)


def throttled(root: Path) -> Throttled | None:
    """Return the largest throttling counts over all groups of this process; None where none is kept."""
    found = [counts for folder in _folders(root) if (counts := _counts(folder)) is not None]
    if not found:
        return None
    return Throttled(periods=max(one.periods for one in found), waited_s=max(one.waited_s for one in found))


def _folders(root: Path) -> Iterator[Path]:
    """Every folder that may hold a limit: the process's own group and those above it, of each hierarchy."""
    base = root / "sys/fs/cgroup"
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 1 mounts each controller set under its name, and links single controllers to it.
        hierarchy = base / controllers if (base / controllers).is_dir() else base / "cpu"
        group = PurePosixPath(path.lstrip("/") or ".")
        # Inside a container the path may be the host's, of which only the top is mounted.
        yield from (hierarchy / part for part in (group, *group.parents) if (hierarchy / part).is_dir())


def _quota(folder: Path) -> float | None:
    quota, _, period = (_text(folder / "cpu.max") or "max").partition(" ")
    if quota == "max":
        quota, period = _text(folder / "cpu.cfs_quota_us") or "-1", _text(folder / "cpu.cfs_period_us") or ""
    try:
        granted, interval = float(quota), float(period or 100_000)
    except ValueError:
        return None
    return granted / interval if granted > 0 and interval > 0 else None


def _counts(folder: Path) -> Throttled | None:
    fields: dict[str, int] = {}
    for line in (_text(folder / "cpu.stat") or "").splitlines():
        key, _, value = line.partition(" ")
        if value.strip().isdecimal():
            fields[key] = int(value)
    if "nr_throttled" not in fields:
        return None
    waited_s = fields["throttled_usec"] / 1e6 if "throttled_usec" in fields else fields.get("throttled_time", 0) / 1e9
    return Throttled(periods=fields["nr_throttled"], waited_s=waited_s)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None
