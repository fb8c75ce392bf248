"""What is known of a figure by its name: how it is called, counted and shown."""

from dataclasses import dataclass

__all__ = ["Metric", "of_kind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How one figure is named and shown; its definition is in `docs/metrics.md`."""

    name: str
    title: str
    kind: str
    """`speed`, `acceptance`, `time` (where a step's time goes), `machine` (memory and energy), `serving` (aggregates of
    other tools), `quality` or `quality_detail` (needed to read a quality figure, no headline itself)."""
    unit: str = ""
    digits: int = 2
    higher_is_better: bool = True
    about: str = ""
    """What the number is, in a phrase that stands alone: what is counted or measured, over what, on which scale."""


def of_kind(
    kind: str, name: str, title: str, about: str, unit: str = "", digits: int = 2, *, up: bool = True
) -> Metric:
    """Return a metric of that kind; `up`: more is better."""
    return Metric(kind=kind, name=name, title=title, about=about, unit=unit, digits=digits, higher_is_better=up)
