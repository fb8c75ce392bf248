"""From a stored run to its results: what `draftboard.measures` makes of the cells, per domain and overall.

Definitions: suites-and-scoring 7 and 8. Only samples that ended well in both arms, under the same prompts, enter a
paired figure. Samples that are not timed count for quality alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from draftboard.certainty import floor_figure, mean_floor, with_certainty
from draftboard.collecting import uncollected
from draftboard.conditions import conditions, notes
from draftboard.measures import (
    Pairing,
    Turns,
    acceptance_figures,
    cost_figures,
    difference_figures,
    distinct,
    forecast,
    gap_between,
    latency_figures,
    machine_figures,
    over_domains,
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
from draftboard.outputs import output_of
from draftboard.plan import BASELINE
from draftboard.recorded import recorded_environment
from draftboard.records import Cell, ScoreRecord
from draftboard.results import DomainResult, Figure, Group, MethodResult, Results, Verdict
from draftboard.statistics import ONE_ROUND, Sampling, resamples_for
from draftboard.store import StoredRun
from draftboard.tables import Part, RunTables
from draftboard.verdict import judge

__all__ = ["analyse", "analyse_runs"]

_GEOMETRIC = ("speedup", "speedup_decode", "speedup_cpu")
"""Overall these are geometric means over domains; all other figures pool all samples."""


def analyse_runs(runs: Sequence[StoredRun], title: str = "") -> Results:
    """Return one group a run: nothing that ran apart shares a ranking."""
    groups = tuple(analyse(run) for run in runs)
    return Results(groups=groups, title=title) if title else Results(groups=groups)


@uncollected()
def analyse(run: StoredRun) -> Group:
    """Return everything that a run came to."""
    context = RunTables.of(run)
    sampling = Sampling(
        seed=abs(int(run.plan.get("seed") or 0)),
        resamples=resamples_for(max(Counter(context.labels.values()).values(), default=0)),
        rounds=context.rounds,
    )
    methods = tuple(_method(context, table) for table in run.plan["methods"])
    group = Group(
        model=str(run.plan["model"]),
        hardware=str(run.environment.get("hardware", "")),
        suite=" + ".join(suite["name"] for suite in run.plan["suites"]),
        baseline=context.baseline or BASELINE,
        conditions=conditions(run),
        domains=tuple(context.domains),
        methods=with_certainty(methods, context.labels, sampling),
        notes=(*notes(run), *_uncertain(context)),
        environment=recorded_environment(run.environment),
    )
    said = judge(run, group)
    return replace(group, verdict=Verdict(valid=bool(said["valid"]), reasons=tuple(said["reasons"])))


def _method(context: RunTables, table: dict[str, Any]) -> MethodResult:
    label = table["label"]
    pairing = context.pairing(label)
    found = {name: _domain(context, label, name, pairing) for name in context.domains}
    domains = {name: domain for name, (domain, _) in found.items()}
    timed = [name for name, inside in context.domains.items() if (inside & context.timed).any()]
    part = context.part(label, pairing.pairs, context.timed)
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
        output=_output(context, label, lossless),
        lossless=lossless,
        settings=_settings(table),
        reference=str(table.get("reference") or ""),
        notes=(
            *_failures(context.methods[label].records),
            *_unpaired(pairing, context),
            *_ended_at_once(part.turns),
            *_without_time(part.turns),
            *_gap({name: domains[name].figures for name in timed}),
        ),
        positions=positions(part.turns) if timed else {},
        diverged_turns=sum(pairing.diverged.values()),
    )


def _domain(
    context: RunTables, label: str, name: str, pairing: Pairing
) -> tuple[DomainResult, list[dict[str, Figure]]]:
    """Return the domain, and its figures by subject."""
    samples, mine = context.domains[name], context.methods[label]
    inside = mine.cells.take(samples[mine.cells.sample])
    scored = [score for score in context.run.scores if score.domain == name]
    scores = [score for score in scored if score.method == label]
    quality = (
        quality_figures(scores)
        if scores
        else skipped_quality(scored, inside.records.tolist() if inside.skipped.any() else ())
    )
    cut = truncated_rate(mine.turns.take(samples[mine.turns.sample]))
    subjects: list[dict[str, Figure]] = []
    places: dict[str, tuple[Figure, ...]] = {}
    if (samples & context.timed).any():
        part = context.part(label, pairing.pairs, samples)
        subjects, places = [subject(context, part) for subject in _SUBJECTS], positions(part.turns)
    figures = {metric: figure for subject in subjects for metric, figure in subject.items()}
    domain = DomainResult(
        domain=name,
        figures={**figures, "truncated_rate": cut, **quality, **_differences(context, label, name, scores)},
        samples=distinct(inside.sample[inside.ok]),
        failed=int(inside.failed.sum()),
        skipped=int(inside.skipped.sum()),
        positions=places,
        diverged_turns=sum(count for sample, count in pairing.diverged.items() if context.labels[sample] == name),
        score_counts=score_counts(scores),
    )
    return domain, subjects


_SUBJECTS: tuple[Callable[[RunTables, Part], dict[str, Figure]], ...] = (
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


def _differences(context: RunTables, label: str, name: str, scores: Sequence[ScoreRecord]) -> dict[str, Figure]:
    """Return the method's quality on one domain less the baseline's."""
    if label == context.baseline or not len(context.plain.cells):
        return {}
    theirs = [score for score in context.run.scores if score.method == context.baseline and score.domain == name]
    return difference_figures(scores, theirs)


def _uncertain(context: RunTables) -> tuple[str, ...]:
    """Say what intervals do not hold, and where there are none."""
    paired = bool(len(context.plain.cells)) and len(context.run.plan["methods"]) > 1
    counts = Counter(context.labels.values())
    lone = [name for name, count in counts.items() if count < 2]
    found = [ONE_ROUND] if paired and context.rounds < 2 and not context.imported else []
    if lone:
        found.append(f"no interval for {', '.join(lone)}, nor overall: it takes two samples of a domain")
    return tuple(found)


def _settings(table: dict[str, Any]) -> dict[str, object]:
    named = {"method": table["method"]} if table.get("method") else {}
    return {**named, **table.get("settings", {})}


def _output(context: RunTables, label: str, lossless: bool | None) -> str:
    """How the method's output compares with the baseline's; empty where that cannot be asked."""
    if label == context.baseline:
        return ""
    if lossless is False:
        return "lossy"
    return output_of(context.run, label, context.plain.records, context.methods[label].records)


def _failures(cells: Iterable[Cell]) -> tuple[str, ...]:
    reasons: dict[str, int] = {}
    for cell in cells:
        if cell.status != "ok":
            text = f"{cell.status}: {cell.reason}"
            reasons[text] = reasons.get(text, 0) + 1
    return tuple(f"{count} × {text}" for text, count in sorted(reasons.items()))


def _unpaired(pairing: Pairing, context: RunTables) -> tuple[str, ...]:
    """Say which turns and samples no paired figure rests on although the method has them."""
    found = []
    left = sum(pairing.diverged.values())
    if left:
        found.append(
            f"{left} of {pairing.turns} turns not paired with the baseline: an earlier answer and so the prompt differs"
        )
    if pairing.alone and len(context.plain.cells):
        found.append(f"{len(pairing.alone)} samples not paired: the baseline has no answer to them")
    return tuple(found)


def _ended_at_once(turns: Turns) -> tuple[str, ...]:
    count = int(turns.ends_at_once.sum())
    if not count:
        return ()
    return (f"{count} of {len(turns)} turns ended with their first emission and are in no decode-only figure",)


def _without_time(turns: Turns) -> tuple[str, ...]:
    count = int((turns.end_ns == 0).sum())
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
