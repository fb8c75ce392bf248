"""A run as a test looks at it: methods by name, figures that say why they are missing, and whether the output held.

A value that is not there raises an AssertionError with the reason in place of comparing as None, so that a test
neither passes nor breaks down on it.
"""

import io
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from draftboard.errors import UserError
from draftboard.methods import MethodError, parse
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Verdict
from draftboard.store import StoredRun

__all__ = ["Measured", "MethodView", "NoFigure", "RunResult", "UnknownName"]

_LOSSLESS = ("identical", "tie-divergent")


class NoFigure(AssertionError):
    """A figure, or its interval, that a test asks for and the run does not have."""


class UnknownName(KeyError):
    """A method, domain or figure that the run does not know."""

    def __str__(self) -> str:
        return str(self.args[0])


def _unknown(kind: str, name: object, known: Mapping[str, object]) -> UnknownName:
    near = get_close_matches(str(name), known, n=1)
    hint = f" — did you mean {near[0]!r}?" if near else "."
    return UnknownName(f"there is no {kind} {name!r}{hint} Known: {', '.join(known) or 'none'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of one method. `value`, `low` and `high` are numbers or raise NoFigure with the reason."""

    name: str
    """As in docs/metrics.md."""
    method: str
    domain: str | None
    """None for the overall figure."""
    figure: Figure

    @property
    def value(self) -> float:
        """The point estimate."""
        __tracebackhide__ = True
        if self.figure.value is None:
            raise NoFigure(f"{self._title} has no value: {self.figure.reason or 'nothing was measured'}")
        return self.figure.value

    @property
    def low(self) -> float:
        """Lower end of the confidence interval."""
        __tracebackhide__ = True
        return self._interval().low

    @property
    def high(self) -> float:
        """Upper end of the confidence interval."""
        __tracebackhide__ = True
        return self._interval().high

    @property
    def level(self) -> float:
        """Confidence of the interval, a fraction such as 0.95."""
        __tracebackhide__ = True
        return self._interval().level

    @property
    def n(self) -> int | None:
        """Samples that the value rests on."""
        return self.figure.n

    @property
    def reason(self) -> str:
        """Why there is no value; empty where there is one."""
        return self.figure.reason

    @property
    def _title(self) -> str:
        return f"{self.name} of {self.method}" + (f" on {self.domain}" if self.domain is not None else "")

    def _interval(self) -> Interval:
        __tracebackhide__ = True
        value = self.value
        if self.figure.interval is None:
            why = f" ({self.figure.reason})" if self.figure.reason else ""
            rests = "" if self.n is None else f"; it rests on {self.n} {'sample' if self.n == 1 else 'samples'}"
            raise NoFigure(
                f"{self._title} is {value:.4g} and has no confidence interval{why}{rests}. "
                "An interval takes two samples in every domain: run more, or assert on .value."
            )
        return self.figure.interval

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        if self.figure.value is None:
            return f"<{self._title}: n/a ({self.figure.reason})>"
        span = self.figure.interval
        within = f" [{span.low:.4g}, {span.high:.4g}]" if span else ""
        return f"<{self._title}: {self.figure.value:.4g}{within}, n={self.n}>"


class MethodView:
    """One method of a run, over all domains or, from `domain()`, on one of them."""

    def __init__(self, group: Group, method: MethodResult, domain: str | None = None) -> None:
        self._group, self._method, self._domain = group, method, domain

    @property
    def label(self) -> str:
        """The name that tables show."""
        return self._method.method

    @property
    def result(self) -> MethodResult:
        """Everything that is known of the method, as plain data."""
        return self._method

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that it ran on."""
        return tuple(self._method.domains)

    def domain(self, name: str) -> "MethodView":
        """The same method on one domain. Raises UnknownName for a domain that the run does not have."""
        __tracebackhide__ = True
        if name not in self._method.domains:
            raise _unknown("domain", name, self._method.domains)
        return MethodView(self._group, self._method, name)

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by name: the overall ones, or the domain's."""
        return dict(self._figures(self._domain))

    def figure(self, name: str, *, domain: str | None = None) -> Measured:
        """A figure by its name in docs/metrics.md, overall or of a domain.

        Raises UnknownName for a name that no figure has, NoFigure for a figure that is only there by domain, such as
        a score.
        """
        __tracebackhide__ = True
        where = self._domain if domain is None else domain
        found = self._figures(where)
        if name not in found:
            holding = [other for other in self._method.domains if name in self._method.domains[other].figures]
            if where is None and holding:
                raise NoFigure(f'{name} has no overall value: ask with domain="…" ({", ".join(holding)})')
            raise _unknown("figure", name, found)
        return Measured(name=name, method=self.label, domain=where, figure=found[name])

    def _figures(self, domain: str | None) -> Mapping[str, Figure]:
        __tracebackhide__ = True
        if domain is None:
            return self._method.overall
        if domain not in self._method.domains:
            raise _unknown("domain", domain, self._method.domains)
        return self._method.domains[domain].figures

    @property
    def speedup(self) -> Measured:
        """End-to-end speedup over the baseline, S_pool."""
        __tracebackhide__ = True
        return self.figure("speedup")

    @property
    def speedup_decode(self) -> Measured:
        """Speedup without the prefill."""
        __tracebackhide__ = True
        return self.figure("speedup_decode")

    @property
    def acceptance_length(self) -> Measured:
        """Tokens kept per step, τ."""
        __tracebackhide__ = True
        return self.figure("acceptance_length")

    @property
    def acceptance_rate(self) -> Measured:
        """Accepted over drafted tokens, α."""
        __tracebackhide__ = True
        return self.figure("acceptance_rate")

    @property
    def output(self) -> str:
        """How its token ids compare with the baseline's over the whole run: `identical`, `tie-divergent`, `different`,
        `lossy`; empty where that cannot be asked: of the baseline, and with a temperature above 0."""
        return self._method.output

    @property
    def lossless(self) -> bool:
        """Whether the output was compared with the baseline's, in every cell that was not skipped, and held.

        It held where all ids are equal, or differ only from places on at which the target scores both tokens within
        rounding of its best (`tie-divergent`). False also where nothing could be compared. True of the baseline.
        """
        if any(part.failed for part in (*self._method.domains.values(), *self._baseline())):
            return False
        return self.label == self._group.baseline or self.output in _LOSSLESS

    def _baseline(self) -> Iterator[DomainResult]:
        for method in self._group.methods:
            if method.method == self._group.baseline:
                yield from method.domains.values()

    def __repr__(self) -> str:
        parts = []
        for name in ("speedup", "acceptance_length"):
            figure = self._figures(self._domain).get(name)
            if figure is not None:
                parts.append(f"{name} {'n/a' if figure.value is None else format(figure.value, '.4g')}")
        parts.append(f"output {self.output or 'not compared'}")
        where = f" on {self._domain}" if self._domain is not None else ""
        return f"<{self.label}{where}: {', '.join(parts)}>"


class RunResult(Mapping[str, MethodView]):
    """The methods of one run by label, the baseline among them.

    A method may also be named as it was asked for: `samd` finds `samd[token_recycling]`.
    """

    def __init__(self, run: StoredRun, group: Group) -> None:
        self.run = run
        """What the run's folder holds: plan, environment, every cell."""
        self.group = group
        """Its figures as plain data."""
        self._methods = {method.method: MethodView(group, method) for method in group.methods}

    def __getitem__(self, name: str) -> MethodView:
        __tracebackhide__ = True
        if name in self._methods:
            return self._methods[name]
        label = _label(name)
        if label in self._methods:
            return self._methods[label]
        raise _unknown("method", name, self._methods)

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)

    @property
    def path(self) -> Path:
        """The run's folder, for `draftboard show` and `draftboard render`."""
        return self.run.path

    @property
    def baseline(self) -> MethodView:
        """What speedups are relative to."""
        return self[self.group.baseline]

    @property
    def verdict(self) -> Verdict:
        """Whether the run can be rested on, with each reason why not."""
        found = self.run.verdict
        if found is None:
            return Verdict(valid=False, reasons=("the run has no verdict: it is not finished",))
        return Verdict(valid=bool(found["valid"]), reasons=tuple(found["reasons"]))

    def show(self, *, every: bool = False, headline_only: bool = False) -> str:
        """Return the tables of the run as `draftboard show` prints them, with `every` all, or only the ranked one."""
        from rich.console import Console

        from draftboard.leaderboards import terminal_table

        width = shutil.get_terminal_size((120, 24)).columns
        console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, markup=False)
        with console.capture() as table:
            console.print(terminal_table(self.group, every=every, headline_only=headline_only))
        return table.get()

    def __repr__(self) -> str:
        return f"<run of {', '.join(self._methods)} in {self.path}>"


def _label(name: object) -> str:
    """The label that a notation is shown under; empty for what is no notation of a known method."""
    try:
        return parse(name).notation() if isinstance(name, str) else ""
    except (MethodError, UserError):
        return ""
