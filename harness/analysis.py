"""From a stored run to its results: what `draftboard.measures` makes of the cells, per domain and overall.

Definitions: suites-and-scoring 7 and 8. Only samples that ended well in both arms, under the same prompts, enter a
paired figure. Samples that are not timed count for quality alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from draftboard.certainty import floor_figure, mean_floor, with_certainty
from draftboard.collecting import uncollected
from draftboard.conditions import conditions, notes
from draftboard.lossless import Margin, compare
from draftboard.lossless import Turn as OutputTurn
from draftboard.measures import (
    Pair,
    Pairing,
    TurnFacts,
    acceptance_figures,
    cost_figures,
    difference_figures,
    facts,
    forecast,
    gap_between,
    latency_figures,
    machine_figures,
    over_domains,
    pair_up,
    pooled_over,
    positions,
    quality_figures,
    rates,
    sample_weighted,
    score_counts,
    share_figures,
    skipped_quality,
    spec_bench_figures,
    speedups,
    truncated_rate,
)
from draftboard.plan import BASELINE
from draftboard.recorded import recorded_environment
from draftboard.records import Cell, ScoreRecord
from draftboard.results import DomainResult, Figure, Group, MethodResult, Results, Verdict
from draftboard.scored import domain_labels
from draftboard.statistics import ONE_ROUND, Sampling
from draftboard.store import StoredRun
from draftboard.verdict import judge

__all__ = ["analyse", "analyse_runs", "domain_labels", "tie_limit", "unsplit_times"]

_TIE_LIMITS = {"float64": 1e-9, "float32": 1e-3, "float16": 0.03, "bfloat16": 0.25}
_GEOMETRIC = ("speedup", "speedup_decode", "speedup_cpu")
"""Overall these are geometric means over domains; all other figures pool all samples."""
_UNSPLIT = "the device was not synchronised within steps: run with --profile"


def unsplit_times(run: StoredRun) -> str:
    """Return why the parts of a step's time are not known, empty where they are."""
    device = str((run.plan.get("resolved") or {}).get("device") or "")
    return _UNSPLIT if device.startswith("cuda") and not run.plan.get("profile") else ""


def tie_limit(dtype: str) -> float:
    """Return the logit margin up to which two tokens count as tied in that dtype (suites-and-scoring 9.2)."""
    return _TIE_LIMITS.get(dtype, 1e-3)


def analyse_runs(runs: Sequence[StoredRun], title: str = "") -> Results:
    """Return one group a run: nothing that ran apart shares a ranking."""
    groups = tuple(analyse(run) for run in runs)
    return Results(groups=groups, title=title) if title else Results(groups=groups)


@uncollected()
def analyse(run: StoredRun) -> Group:
    """Return everything that a run came to."""
    context = _Context.of(run)
    sampling = Sampling(seed=abs(int(run.plan.get("seed") or 0)), rounds=context.rounds)
    methods = tuple(_method(context, table) for table in run.plan["methods"])
    group = Group(
        model=str(run.plan["model"]),
        hardware=str(run.environment.get("hardware", "")),
        suite=" + ".join(suite["name"] for suite in run.plan["suites"]),
        baseline=context.baseline or BASELINE,
        conditions=conditions(run),
        domains=tuple(dict.fromkeys(context.labels.values())),
        methods=with_certainty(methods, context.labels, sampling),
        notes=(*notes(run), *_uncertain(context)),
        environment=recorded_environment(run.environment),
    )
    said = judge(run, group)
    return replace(group, verdict=Verdict(valid=bool(said["valid"]), reasons=tuple(said["reasons"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What all methods of a run share."""

    run: StoredRun
    imported: bool
    labels: dict[str, str]
    """Sample key → domain."""
    timed: frozenset[str]
    """Keys of the samples that speed and acceptance are measured on."""
    baseline: str | None
    baseline_cells: tuple[Cell, ...]
    baseline_turns: tuple[TurnFacts, ...]
    wanted: frozenset[tuple[str, int]]
    """Sample and round of the timed cells that a complete method has."""
    rounds: int
    """Rounds that were run, in part or whole."""
    unsplit: str
    """Why the parts of a step's time are not true; empty where they are."""

    @classmethod
    def of(cls, run: StoredRun) -> "_Context":
        baseline = run.plan.get("baseline", BASELINE)
        labels = domain_labels(run.samples)
        timed = frozenset(record.key for record in run.samples if record.timed)
        cells = tuple(cell for cell in run.cells if cell.method == baseline and cell.sample in labels)
        imported = "imported" in run.plan
        wanted = {(key, repeat) for key in timed for repeat in range(int(run.plan["repeats"]))}
        if imported and cells:
            # The union of all files' questions is nobody's suite; what the baseline answers is what can be compared.
            wanted = {(cell.sample, cell.repeat) for cell in cells if cell.sample in timed}
        return cls(
            run=run,
            imported=imported,
            labels=labels,
            timed=timed,
            baseline=baseline,
            baseline_cells=cells,
            baseline_turns=tuple(facts(cells)),
            wanted=frozenset(wanted),
            rounds=1 + max((cell.repeat for cell in run.cells), default=0),
            unsplit=unsplit_times(run),
        )

    @property
    def no_pair(self) -> str:
        """Why a method without pairs has none."""
        if self.baseline_cells:
            return "no sample could be paired with the baseline"
        model = str(self.run.plan["model"] or "")
        return f"no {self.baseline or BASELINE} run" + (f" for {model}" if model else "")

    def missing(self, cells: Sequence[Cell], wanted: set[tuple[str, int]]) -> str:
        """Say what keeps a method from being ranked; skipped prompts are skipped in every method and do not count."""
        failed = sum(cell.status == "failed" for cell in cells)
        if failed:
            return f"{failed} of {max(len(wanted), len(cells))} cells failed"
        lacking = len(wanted - {(cell.sample, cell.repeat) for cell in cells})
        if lacking:
            verb = "are not in the imported file" if self.imported else "have not run"
            return f"{lacking} of {len(wanted)} cells {verb}"
        return ""


def _method(context: _Context, table: dict[str, Any]) -> MethodResult:
    label = table["label"]
    mine = [cell for cell in context.run.cells if cell.method == label and cell.sample in context.labels]
    turns = facts(mine)
    pairing = pair_up(context.baseline_turns, turns)
    names = tuple(dict.fromkeys(context.labels.values()))
    found = {name: _domain(context, label, name, mine, turns, pairing) for name in names}
    domains = {name: domain for name, (domain, _) in found.items()}
    timed = [name for name in names if any(context.labels[key] == name for key in context.timed)]
    part = _Part.of(context, mine, turns, pairing, context.timed)
    overall: dict[str, Figure] = {}
    if timed:
        subjects = zip(_SUBJECTS, *(found[name][1] for name in timed), strict=True)
        for subject, *parts in subjects:
            overall |= pooled_over(parts) or subject(context, part)
        overall |= _over_domains(overall, [domains[name].figures for name in timed])
        overall["noise_floor"] = mean_floor([domains[name].figures["noise_floor"] for name in timed])
    lossless = table.get("lossless", None if context.imported else True)
    return MethodResult(
        method=label,
        domains=domains,
        overall=overall,
        output=_output(context, label, lossless, mine),
        lossless=lossless,
        settings=_settings(table),
        reference=str(table.get("reference") or ""),
        notes=(
            *_failures(mine),
            *_unpaired(pairing, context),
            *_ended_at_once(part.turns),
            *_without_time(part.turns),
            *_gap({name: domains[name].figures for name in timed}),
        ),
        positions=positions(part.turns) if timed else {},
        diverged_turns=sum(pairing.diverged.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One method on some timed samples, with the baseline beside it."""

    cells: list[Cell]
    turns: list[TurnFacts]
    pairs: tuple[Pair, ...]
    baseline_cells: list[Cell]
    baseline_turns: list[TurnFacts]
    missing: str

    @classmethod
    def of(
        cls,
        context: _Context,
        cells: Sequence[Cell],
        turns: Sequence[TurnFacts],
        pairing: Pairing,
        samples: Iterable[str],
    ) -> "_Part":
        inside = context.timed.intersection(samples)
        mine = [cell for cell in cells if cell.sample in inside]
        return cls(
            cells=mine,
            turns=[turn for turn in turns if turn.sample in inside],
            pairs=pairing.only(inside),
            baseline_cells=[cell for cell in context.baseline_cells if cell.sample in inside],
            baseline_turns=[turn for turn in context.baseline_turns if turn.sample in inside],
            missing=context.missing(mine, {cell for cell in context.wanted if cell[0] in inside}),
        )


def _domain(
    context: _Context,
    label: str,
    name: str,
    cells: Sequence[Cell],
    turns: Sequence[TurnFacts],
    pairing: Pairing,
) -> tuple[DomainResult, list[dict[str, Figure]]]:
    """Return the domain, and its figures by subject."""
    samples = {key for key, domain in context.labels.items() if domain == name}
    inside = [cell for cell in cells if cell.sample in samples]
    scored = [score for score in context.run.scores if score.domain == name]
    scores = [score for score in scored if score.method == label]
    quality = quality_figures(scores) if scores else skipped_quality(scored, inside)
    cut = truncated_rate([turn for turn in turns if turn.sample in samples])
    subjects: list[dict[str, Figure]] = []
    places: dict[str, tuple[Figure, ...]] = {}
    if not samples.isdisjoint(context.timed):
        part = _Part.of(context, cells, turns, pairing, samples)
        subjects, places = [subject(context, part) for subject in _SUBJECTS], positions(part.turns)
    figures = {metric: figure for subject in subjects for metric, figure in subject.items()}
    domain = DomainResult(
        domain=name,
        figures={**figures, "truncated_rate": cut, **quality, **_differences(context, label, name, scores)},
        samples=len({cell.sample for cell in inside if cell.status == "ok"}),
        failed=sum(cell.status == "failed" for cell in inside),
        skipped=sum(cell.status == "skipped" for cell in inside),
        positions=places,
        diverged_turns=sum(count for sample, count in pairing.diverged.items() if sample in samples),
        score_counts=score_counts(scores),
    )
    return domain, subjects


_SUBJECTS: tuple[Callable[[_Context, _Part], dict[str, Figure]], ...] = (
    lambda context, part: speedups(part.pairs, missing=part.missing, nothing=context.no_pair),
    lambda context, part: {"noise_floor": floor_figure(part.pairs, context.rounds, part.missing)},
    lambda _, part: spec_bench_figures(part.turns, part.baseline_turns, part.missing),
    lambda _, part: acceptance_figures(part.turns, part.missing),
    lambda _, part: rates(part.turns, part.missing),
    lambda _, part: latency_figures(part.turns, part.missing),
    lambda context, part: {
        "forecast_decode": forecast(part.turns, context.run.environment.get("cost_curve"), part.missing)
    },
    lambda context, part: share_figures(part.turns, nothing=part.missing, unsplit=context.unsplit),
    lambda context, part: cost_figures(part.pairs, nothing=context.no_pair, unsplit=context.unsplit),
    lambda _, part: machine_figures(part.cells, part.baseline_cells, part.missing),
)
"""Every figure of speed, acceptance, time and machine on some samples."""


def _over_domains(pooled: dict[str, Figure], domains: Sequence[dict[str, Figure]]) -> dict[str, Figure]:
    """Return the overall speedups that are means over domains, and the pooled ones beside them."""
    by_name = {name: [figures[name] for figures in domains] for name in _GEOMETRIC}
    return {
        **{name: over_domains(figures) for name, figures in by_name.items()},
        "speedup_pooled": pooled["speedup"],
        "speedup_decode_pooled": pooled["speedup_decode"],
        "speedup_mean_of_domains": over_domains(by_name["speedup"], fmean, "mean"),
        "speedup_sample_weighted": sample_weighted(by_name["speedup"]),
    }


def _differences(context: _Context, label: str, name: str, scores: Sequence[ScoreRecord]) -> dict[str, Figure]:
    """Return the method's quality on one domain less the baseline's."""
    if label == context.baseline or not context.baseline_cells:
        return {}
    theirs = [score for score in context.run.scores if score.method == context.baseline and score.domain == name]
    return difference_figures(scores, theirs)


def _uncertain(context: _Context) -> tuple[str, ...]:
    """Say what intervals do not hold, and where there are none."""
    paired = bool(context.baseline_cells) and len(context.run.plan["methods"]) > 1
    counts = Counter(context.labels.values())
    lone = [name for name, count in counts.items() if count < 2]
    found = [ONE_ROUND] if paired and context.rounds < 2 and not context.imported else []
    if lone:
        found.append(f"no interval for {', '.join(lone)}, nor overall: it takes two samples of a domain")
    return tuple(found)


def _settings(table: dict[str, Any]) -> dict[str, object]:
    named = {"method": table["method"]} if table.get("method") else {}
    return {**named, **table.get("settings", {})}


def _output(context: _Context, label: str, lossless: bool | None, mine: Sequence[Cell]) -> str:
    """How the method's output compares with the baseline's; empty where that cannot be asked."""
    if label == context.baseline:
        return ""
    if lossless is False:
        return "lossy"
    run = context.run
    base = {(c.sample, c.repeat): c for c in context.baseline_cells if c.status == "ok"}
    own = {(c.sample, c.repeat): c for c in mine if c.status == "ok"}
    both = base.keys() & own.keys()
    if context.imported:
        return _text_output([(base[key], own[key]) for key in both])
    if run.plan["sampling"]["temperature"] > 0:
        return ""
    margins = {
        ((d.sample, d.repeat), d.turn): Margin(reference=d.baseline_below_best, method=d.method_below_best)
        for d in run.divergences
        if d.method == label
    }
    limit = tie_limit(str(run.plan.get("resolved", {}).get("dtype", "float32")))
    audited = (run.audit or {}).get("limit")
    if audited and audited["source"] == "measured":
        limit = max(limit, float(audited["value"]))
    return compare(_outputs(base, both), _outputs(own, both), tie_limit=limit, margins=margins).output


def _text_output(pairs: Sequence[tuple[Cell, Cell]]) -> str:
    """Compare texts: that is all that is known of an imported answer."""
    if not any(base.turns and own.turns for base, own in pairs):
        return ""
    equal = all(a.text == b.text for base, own in pairs for a, b in zip(base.turns, own.turns, strict=False))
    return "text-equal" if equal else "text-different"


def _outputs(
    cells: dict[tuple[str, int], Cell], keys: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], list[OutputTurn]]:
    return {
        key: [OutputTurn(token_ids=t.token_ids, prompt=t.prompt_sha256) for t in cells[key].turns]
        for key in sorted(keys)
    }


def _failures(cells: Iterable[Cell]) -> tuple[str, ...]:
    reasons: dict[str, int] = {}
    for cell in cells:
        if cell.status != "ok":
            text = f"{cell.status}: {cell.reason}"
            reasons[text] = reasons.get(text, 0) + 1
    return tuple(f"{count} × {text}" for text, count in sorted(reasons.items()))


def _unpaired(pairing: Pairing, context: _Context) -> tuple[str, ...]:
    """Say which turns and samples no paired figure rests on although the method has them."""
    found = []
    left = sum(pairing.diverged.values())
    if left:
        found.append(
            f"{left} of {pairing.turns} turns not paired with the baseline: an earlier answer and so the prompt differs"
        )
    if pairing.alone and context.baseline_cells:
        found.append(f"{len(pairing.alone)} samples not paired: the baseline has no answer to them")
    return tuple(found)


def _ended_at_once(turns: Sequence[TurnFacts]) -> tuple[str, ...]:
    count = sum(turn.ends_at_once for turn in turns)
    if not count:
        return ()
    return (f"{count} of {len(turns)} turns ended with their first emission and are in no decode-only figure",)


def _without_time(turns: Sequence[TurnFacts]) -> tuple[str, ...]:
    count = sum(not turn.seconds for turn in turns)
    return (f"{count} of {len(turns)} turns took no time and are in no figure of speed",) if count else ()


def _gap(domains: dict[str, dict[str, Figure]]) -> tuple[str, ...]:
    apart = [
        f"{name} ({figures['speedup'].value:.2f}, {figures['speedup_gm'].value:.2f})"
        for name, figures in domains.items()
        if gap_between(figures["speedup"], figures["speedup_gm"])
    ]
    if not apart:
        return ()
    return (f"pooled speedup and geometric mean of samples are over 5 % apart in {', '.join(apart)}",)
