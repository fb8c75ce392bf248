"""What the doctor found, as one frozen result and as one strict JSON document."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from draftboard.doctor.noise import Noise
from draftboard.doctor.power import Design
from draftboard.doctor.sign import Sign
from draftboard.hardware import Environment

__all__ = ["Curve", "Measured", "Recommendation", "Report", "by_weight", "document"]

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A measured cost curve; the cost of one row is 1."""

    rows: tuple[int, ...]
    cost: tuple[float, ...]
    one_row_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured with a model."""

    model: str
    dtype: str
    device: str
    threads: int
    curve: Curve
    rounds: int
    samples: int
    tokens: int
    wall: Noise | None
    """None where the clock is too coarse."""
    cpu: Noise | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """How to see the wanted difference."""

    detect: float
    """The wanted relative difference in speed; 0.05 is 5 %."""
    power: float
    design: Design | None
    """None where no design of reasonable size sees it."""
    smallest: float
    """The relative difference that all of Spec-Bench would see, in 3 to 10 rounds."""
    run_options: tuple[str, ...]
    """What `draftboard run` is told for the design, methods left to the reader; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole examination."""

    environment: Environment
    hardware: str
    signs: tuple[Sign, ...]
    measured: Measured | None
    recommendation: Recommendation | None

    @property
    def reliable(self) -> bool:
        """Whether nothing stands in the way of measuring."""
        return all(sign.state != "unreliable" for sign in self.signs)


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON. Noise is in log units: 0.01 is about one percent."""
    import msgspec

    measured, wanted = report.measured, report.recommendation
    plain: dict[str, Any] = msgspec.to_builtins(
        {
            "schema": SCHEMA,
            "reliable": report.reliable,
            "hardware": report.hardware,
            "environment": report.environment,
            "signs": [{**asdict(sign), "advice": sign.advice or None} for sign in report.signs],
            "measured": None if measured is None else _measured(measured),
            "recommendation": None if wanted is None else asdict(wanted),
        }
    )
    return plain


def _measured(measured: Measured) -> dict[str, Any]:
    return {
        **{key: value for key, value in asdict(measured).items() if key not in ("wall", "cpu")},
        "noise": {
            name: None if noise is None else asdict(noise)
            for name, noise in (("wall", measured.wall), ("cpu", measured.cpu))
        },
    }


def by_weight(signs: Sequence[Sign]) -> tuple[Sign, ...]:
    """Return signs, the worst first; those of one state stay in their order."""
    order = {"unreliable": 0, "note": 1, "fine": 2, "n/a": 3}
    return tuple(sorted(signs, key=lambda sign: order[sign.state]))
