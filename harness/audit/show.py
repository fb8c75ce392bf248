"""An audit in a terminal: a table of counts, then each difference and each reason. Readable at 80 columns."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from draftboard.audit.report import Difference, MethodAudit, Report, SamplingAudit
from draftboard.leaderboards.text import terminal_text

__all__ = ["console_text"]

_COLUMNS = {
    "equal": "identical",
    "tie": "near-tie",
    "mism.": "mismatch",
    "len.": "length",
    "unj.": "different",
    "n/c": "not-comparable",
    "miss.": "missing",
}
_ALWAYS = ("equal", "tie", "mism.")
_LONG = {
    "mism.": "mismatch",
    "len.": "length",
    "unj.": "unjudged",
    "n/c": "not comparable",
    "miss.": "missing",
}
_MOST = 5
"""Differences of a method that are told one by one; --json has all of them."""
_WORST = ("length", "mismatch", "different", "near-tie")
_SOURCES = {"measured": "measured", "given": "as given", "default": "default of the number format, not measured"}


def console_text(report: Report) -> str:
    """Return the report as it is printed, folded to the terminal's width."""
    console = Console()
    with console.capture() as told:
        for part in _parts(report):
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in told.get().splitlines())


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.limit is not None:
        yield _text(_limit(report))
    if report.methods:
        yield _table(report.methods)
        yield _text(f"turns: {_legend(report.methods)}", style="dim")
    for method in report.methods:
        yield from _method(method)
    if report.sampling is not None:
        yield from _sampling(report.sampling)
    for note in report.notes:
        yield _text(f"note: {note}")
    yield _text(_outcome(report), style="bold green" if report.passed else "bold red")


def _limit(report: Report) -> str:
    limit = report.limit
    if limit is None:
        return ""
    words = f"theta = {limit.value:.3g} logits, {_SOURCES[limit.source]}"
    if limit.source == "measured":
        words += f" over {limit.positions} positions (99.9th percentile {limit.percentile or 0:.3g})"
    return f"{words}; baseline {report.baseline}" + (f", {report.dtype}" if report.dtype else "")


def _table(methods: tuple[MethodAudit, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", overflow="fold")
    shown = _shown(methods)
    for name in shown:
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for method in methods:
        claim = "" if method.lossless else " (lossy)"
        style = "red" if method.faulty else "green" if method.lossless else ""
        table.add_row(
            _text(method.method), *_counts(method.counts, shown), _text(f"{method.verdict}{claim}", style=style)
        )
        if len(method.domains) > 1:
            for domain, counts in method.domains.items():
                table.add_row(_text(f"·{domain}"), *_counts(counts, shown), "", style="dim")
    return table


def _shown(methods: tuple[MethodAudit, ...]) -> list[str]:
    """Return the columns that have anything to say."""
    counted = {outcome for method in methods for outcome in method.counts}
    return [name for name, outcome in _COLUMNS.items() if name in _ALWAYS or outcome in counted]


def _legend(methods: tuple[MethodAudit, ...]) -> str:
    return ", ".join(f"{name} = {_LONG[name]}" for name in _shown(methods) if name in _LONG)


def _counts(counts: dict[str, int], shown: list[str]) -> list[str]:
    return [str(counts.get(_COLUMNS[name], 0) or "–") for name in shown]


def _method(method: MethodAudit) -> Iterator[Text]:
    shown = sorted(method.differences, key=lambda d: _WORST.index(d.outcome))
    for difference in shown[:_MOST]:
        yield _text(f"{method.method}: {_difference(difference)}")
    if len(shown) > _MOST:
        yield _text(f"{method.method}: {len(shown) - _MOST} more differences; --json has all")
    if method.reason:
        yield _text(f"{method.method}: {method.reason}", style="red" if method.lossless else "")
    for note in method.notes:
        yield _text(f"{method.method}: note: {note}")
    if method.passed and method.verdict == "tie-divergent":
        yield _text(f"{method.method}: note: it differs at ties alone; --exact would fail it")


def _difference(d: Difference) -> str:
    where = f"{d.sample}, turn {d.turn + 1}" + (f", round {d.repeat + 1}" if d.repeat else "")
    tokens = f"{_token(d.baseline_token)} (baseline) or {_token(d.method_token)}"
    words = [f"{d.outcome} on {where}, place {d.place}: {tokens}", f"{d.shared:.0%} shared"]
    if d.margin is not None:
        words.append(f"margin {d.margin:.3g}")
    if d.gap is not None:
        words.append(f"gap {d.gap:.3g}")
    if d.baseline_rank is not None or d.method_rank is not None:
        words.append(f"ranks {_token(d.baseline_rank)} and {_token(d.method_rank)}")
    if d.float32_sides_with:
        words.append(f"float32 sides with {d.float32_sides_with}")
    return "; ".join(words)


def _token(value: int | None) -> str:
    return "–" if value is None else str(value)


def _sampling(found: SamplingAudit) -> Iterator[Text]:
    yield _text(f"sampling at temperature {found.temperature:g}, top-p {found.top_p:g}, top-k {found.top_k}")
    for toy in found.toy:
        yield _text(
            f"  toy, {toy.draft}, {', '.join(toy.methods)}: total variation {toy.variation:.4f}, plain decoding "
            f"{toy.plain[0]:.4f} and {toy.plain[1]:.4f}, p = {toy.p_value:.2g}: {_passes(toy.passed)}"
        )
    for check in found.model:
        if check.passed is None:
            yield _text(f"  {check.method}: not checked on the model: {check.reason}")
            continue
        smallest = min(one.adjusted for one in check.prompts)
        drafted = sum(one.drafted for one in check.prompts)
        yield _text(
            f"  {check.method}: {len(check.prompts)} prompts, {check.draws} draws each, {drafted} with a draft, "
            f"smallest p after Holm {smallest:.2g}: {_passes(check.passed)}"
            + (f" ({check.reason})" if check.reason else "")
        )
    for own in found.itself:
        yield _text(f"  draft = target, {own.where}: {own.accepted} of {own.drafted} accepted: {_passes(own.passed)}")
    if found.skipped:
        yield _text(f"  not checked on the model: {found.skipped}")


def _passes(passed: bool) -> str:
    return "passes" if passed else "FAILS"


def _outcome(report: Report) -> str:
    if report.passed:
        return "every method that claims to be lossless passes"
    broken = [method.method for method in report.methods if method.faulty]
    faults = report.sampling.faults if report.sampling else ()
    words = [f"not lossless as claimed: {', '.join(broken)}"] if broken else []
    return "; ".join([*words, *(f"sampling: {fault}" for fault in faults)])


def _text(words: str, style: str = "") -> Text:
    return Text(terminal_text(words), style=style)
