"""From stored cells to figures: paired with the baseline, per domain and overall. Pure functions of a stored run.

Definitions: suites-and-scoring 7 and 8. Seconds and tokens of a sample are sums over its turns, averaged over rounds;
only samples that ended well in both arms, under the same prompts, enter a paired figure.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median
from typing import Any

from draftboard.lossless import Margin, compare
from draftboard.lossless import Turn as OutputTurn
from draftboard.plan import BASELINE
from draftboard.records import Cell, SampleRecord, Turn
from draftboard.results import DomainResult, Figure, Group, MethodResult, Results
from draftboard.store import StoredRun

__all__ = ["analyse", "analyse_runs", "domain_labels", "tie_limit"]

_TIE_LIMITS = {"float64": 1e-9, "float32": 1e-3, "float16": 0.03, "bfloat16": 0.25}


def tie_limit(dtype: str) -> float:
    """Return the logit margin up to which two tokens count as tied in that dtype (suites-and-scoring 9.2)."""
    return _TIE_LIMITS.get(dtype, 1e-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """Sums over the turns of one sample, averaged over its rounds."""

    tokens: float
    seconds: float
    cpu_s: float
    decode_tokens: float
    decode_s: float


def analyse_runs(runs: Sequence[StoredRun], title: str = "") -> Results:
    """Return one group a run: nothing that ran apart shares a ranking."""
    groups = tuple(analyse(run) for run in runs)
    return Results(groups=groups, title=title) if title else Results(groups=groups)


def analyse(run: StoredRun) -> Group:
    """Return everything that a run came to."""
    samples = {record.key: record for record in run.samples}
    labels = domain_labels(run.samples)
    domains = tuple(dict.fromkeys(labels.values()))
    methods = tuple(_method(run, table, samples, labels, domains) for table in run.plan["methods"])
    return Group(
        model=str(run.plan["model"]),
        hardware=str(run.environment.get("hardware", "")),
        suite=" + ".join(suite["name"] for suite in run.plan["suites"]),
        baseline=BASELINE,
        conditions=_conditions(run),
        domains=domains,
        methods=methods,
        notes=_notes(run),
    )


def domain_labels(samples: Iterable[SampleRecord]) -> dict[str, str]:
    """Name each sample's domain; the suite is put before it where two suites use the same word."""
    suites: dict[str, set[str]] = {}
    for record in samples:
        suites.setdefault(record.domain, set()).add(record.suite)
    return {
        record.key: record.domain if len(suites[record.domain]) == 1 else f"{record.suite}: {record.domain}"
        for record in samples
    }


def _method(
    run: StoredRun,
    table: dict[str, Any],
    samples: dict[str, SampleRecord],
    labels: dict[str, str],
    domains: Sequence[str],
) -> MethodResult:
    label = table["label"]
    mine = [cell for cell in run.cells if cell.method == label and cell.sample in samples]
    theirs = [cell for cell in run.cells if cell.method == BASELINE]
    paired = _paired(theirs, mine)
    results: dict[str, DomainResult] = {}
    for domain in domains:
        inside = [cell for cell in mine if labels[cell.sample] == domain]
        pairs = {key: pair for key, pair in paired.items() if labels[key] == domain}
        wanted = sum(1 for name in labels.values() if name == domain) * int(run.plan["repeats"])
        figures = _figures(inside, pairs, run, missing=_missing(inside, wanted))
        figures |= _quality(run, label, domain)
        results[domain] = DomainResult(
            domain=domain,
            figures=figures,
            samples=len({cell.sample for cell in inside if cell.status == "ok"}),
            failed=sum(cell.status == "failed" for cell in inside),
            skipped=sum(cell.status == "skipped" for cell in inside),
        )
    overall = _figures(mine, paired, run, missing=_missing(mine, len(labels) * int(run.plan["repeats"])))
    overall["speedup_pooled"] = overall["speedup"]
    for name in ("speedup", "speedup_decode", "speedup_cpu"):
        overall[name] = _over_domains([results[domain].figures[name] for domain in domains], geometric_mean)
    by_domain = [results[domain].figures["speedup"] for domain in domains]
    overall["speedup_mean_of_domains"] = _over_domains(by_domain, fmean)
    return MethodResult(
        method=label,
        domains=results,
        overall=overall,
        output=_output(run, table, theirs, mine),
        lossless=bool(table.get("lossless", True)),
        settings={"method": table["method"], **table["settings"]},
        reference=str(table.get("reference", "")),
        notes=(*_failures(mine), *_unpaired(theirs, mine)),
    )


def _missing(cells: Sequence[Cell], wanted: int) -> str:
    """Say what keeps a method from being ranked; skipped prompts are skipped in every method and do not count."""
    failed = sum(cell.status == "failed" for cell in cells)
    if failed:
        return f"{failed} of {wanted} cells failed"
    if len(cells) < wanted:
        return f"{wanted - len(cells)} of {wanted} cells have not run"
    return ""


def _paired(theirs: Iterable[Cell], mine: Iterable[Cell]) -> dict[str, tuple[_Totals, _Totals]]:
    """Return (baseline, method) totals of every sample that can be paired, over the turns that have one prompt in both.

    A turn that follows differing answers has another prompt; it and what comes after it leave paired figures.
    """
    base: dict[tuple[str, int], Cell] = {(c.sample, c.repeat): c for c in theirs if c.status == "ok"}
    found: dict[str, tuple[list[Turn], list[Turn], int]] = {}
    for cell in mine:
        other = base.get((cell.sample, cell.repeat))
        shared = 0 if other is None or cell.status != "ok" else _shared_turns(other, cell)
        if other is not None and shared:
            left, right, rounds = found.get(cell.sample, ([], [], 0))
            found[cell.sample] = [*left, *other.turns[:shared]], [*right, *cell.turns[:shared]], rounds + 1
    return {sample: (_totals(left, rounds), _totals(right, rounds)) for sample, (left, right, rounds) in found.items()}


def _shared_turns(first: Cell, second: Cell) -> int:
    """Return how many turns, from the first on, were asked with the same prompt in both cells."""
    pairs = zip(first.turns, second.turns, strict=False)
    return next(
        (index for index, (a, b) in enumerate(pairs) if a.prompt_sha256 != b.prompt_sha256),
        min(len(first.turns), len(second.turns)),
    )


def _totals(turns: Sequence[Turn], rounds: int) -> _Totals:
    return _Totals(
        tokens=sum(len(t.token_ids) for t in turns) / rounds,
        seconds=sum(t.end_ns for t in turns) / 1e9 / rounds,
        cpu_s=sum(t.cpu_ns for t in turns) / 1e9 / rounds,
        decode_tokens=sum(len(t.token_ids) - 1 for t in turns) / rounds,
        decode_s=sum(t.end_ns - t.first_ns for t in turns) / 1e9 / rounds,
    )


def _figures(
    cells: Sequence[Cell], pairs: dict[str, tuple[_Totals, _Totals]], run: StoredRun, *, missing: str
) -> dict[str, Figure]:
    """Return the speed and acceptance figures of one method on these cells."""
    good = [cell for cell in cells if cell.status == "ok"]
    n = len({cell.sample for cell in good})
    why = missing or "no sample ended without error"
    turns = [turn for cell in good for turn in cell.turns]
    steps = _Steps.of(turns)
    figures = {
        "speedup": _speedup(pairs, lambda t: (t.seconds, t.tokens), missing),
        "speedup_decode": _speedup(pairs, lambda t: (t.decode_s, t.decode_tokens), missing),
        "speedup_cpu": _speedup(pairs, lambda t: (t.cpu_s, t.tokens), missing),
        "acceptance_length": _ratio(steps.kept, steps.count, n, why if not good else "no step after the prefill"),
        "acceptance_length_mean_of_samples": _mean_acceptance(good),
        "acceptance_rate": _ratio(steps.accepted, steps.drafted, n, "nothing was drafted"),
        "tokens_per_target_pass": _ratio(sum(len(t.token_ids) for t in turns), steps.count + len(turns), n, why),
        "tokens_per_s": _ratio(sum(len(t.token_ids) for t in turns), sum(t.end_ns for t in turns) / 1e9, n, why),
        "decode_tokens_per_s": _ratio(
            sum(len(t.token_ids) - 1 for t in turns), sum(t.end_ns - t.first_ns for t in turns) / 1e9, n, why
        ),
        "ttft_s": _ratio(median(t.first_ns for t in turns) if turns else 0, 1e9 if turns else 0, n, why),
        "nodes_per_step": _ratio(steps.nodes, steps.count, n, why),
    }
    per_sample = [
        _totals([turn for cell in of_sample for turn in cell.turns], len(of_sample)) for of_sample in _by_sample(good)
    ]
    rates = [totals.tokens / totals.seconds for totals in per_sample if totals.seconds]
    figures["tokens_per_s_mean_of_samples"] = (
        Figure(value=fmean(rates), n=n) if rates else Figure(value=None, n=0, reason=why)
    )
    total = steps.draft_ns + steps.verify_ns + steps.other_ns
    for name in ("draft", "verify", "other"):
        figures[f"{name}_share"] = _ratio(getattr(steps, f"{name}_ns"), total, n, why)
    figures["forecast_decode"] = _forecast(turns, run, n)
    return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Sums over all steps. Accepted counts only drafted tokens that survived the cut: min(accepted, kept)."""

    count: int
    kept: int
    accepted: int
    drafted: int
    nodes: int
    draft_ns: int
    verify_ns: int
    other_ns: int

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> "_Steps":
        columns = [turn.steps for turn in turns if turn.steps]
        return cls(
            count=sum(len(c["kept"]) for c in columns),
            kept=sum(sum(c["kept"]) for c in columns),
            accepted=sum(min(a, k) for c in columns for a, k in zip(c["accepted"], c["kept"], strict=True)),
            drafted=sum(sum(c["drafted"]) for c in columns),
            nodes=sum(sum(c["nodes"]) for c in columns),
            draft_ns=sum(sum(c["draft_ns"]) for c in columns),
            verify_ns=sum(sum(c["verify_ns"]) for c in columns),
            other_ns=sum(sum(c["other_ns"]) for c in columns),
        )


def _ratio(top: float, bottom: float, n: int, why: str) -> Figure:
    return Figure(value=top / bottom, n=n) if bottom else Figure(value=None, n=n, reason=why)


def _speedup(
    pairs: dict[str, tuple[_Totals, _Totals]], take: Callable[[_Totals], tuple[float, float]], missing: str
) -> Figure:
    """S_pool: baseline seconds per token over the method's, totals over totals."""
    if missing:
        return Figure(value=None, n=len(pairs), reason=missing)
    if not pairs:
        return Figure(value=None, n=0, reason="no sample could be paired with the baseline")
    base, own = [take(pair[0]) for pair in pairs.values()], [take(pair[1]) for pair in pairs.values()]
    base_s, base_n = sum(s for s, _ in base), sum(t for _, t in base)
    own_s, own_n = sum(s for s, _ in own), sum(t for _, t in own)
    if not (base_s and base_n and own_s and own_n):
        return Figure(value=None, n=len(pairs), reason="no time or no tokens to divide by")
    return Figure(value=(base_s / base_n) / (own_s / own_n), n=len(pairs))


def _over_domains(figures: Sequence[Figure], mean: Callable[[list[float]], float]) -> Figure:
    """Mean over domains, and only if every domain has a value."""
    values = [figure.value for figure in figures if figure.value is not None]
    n = sum(figure.n or 0 for figure in figures)
    if len(values) < len(figures) or not values:
        why = next((figure.reason for figure in figures if figure.value is None), "no domains")
        return Figure(value=None, n=n, reason=f"{len(values)} of {len(figures)} domains: {why}")
    return Figure(value=mean(values), n=n)


def _by_sample(cells: Iterable[Cell]) -> list[list[Cell]]:
    """All rounds of each sample together."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.sample, []).append(cell)
    return list(found.values())


def _mean_acceptance(cells: Sequence[Cell]) -> Figure:
    values = []
    for of_sample in _by_sample(cells):
        steps = _Steps.of(turn for cell in of_sample for turn in cell.turns)
        if steps.count:
            values.append(steps.kept / steps.count)
    return Figure(value=fmean(values), n=len(values)) if values else Figure(value=None, n=0, reason="no steps")


def _forecast(turns: Iterable[Turn], run: StoredRun, n: int) -> Figure:
    """Tokens per cost that the measured curve promises for these drafts: no drafting cost, no overhead."""
    curve = run.environment.get("cost_curve")
    if not curve:
        return Figure(value=None, n=n, reason="no cost curve in this run")
    from draftboard.methods.engine.cost import CostCurve

    cost = CostCurve(rows=tuple(curve["rows"]), cost=tuple(curve["cost"]))
    kept = spent = 0.0
    for turn in turns:
        if turn.steps:
            kept += sum(turn.steps["kept"])
            spent += sum(cost.at(nodes + 1) for nodes in turn.steps["nodes"])
    return _ratio(kept, spent, n, "no steps")


def _quality(run: StoredRun, label: str, domain: str) -> dict[str, Figure]:
    """Quality of one method on one domain: the mean over rounds of each metric."""
    found: dict[str, list[Any]] = {}
    for record in run.scores:
        if record.method == label and record.domain == domain:
            for name, value in record.scores.values.items():
                found.setdefault(name, []).append(value)
    figures: dict[str, Figure] = {}
    for name, values in found.items():
        numbers = [value.value for value in values if value.value is not None]
        figures[name] = Figure(
            value=fmean(numbers) if numbers else None,
            n=values[0].n,
            reason="" if numbers else values[0].reason,
            signature=values[0].signature,
        )
    return figures


def _output(run: StoredRun, table: dict[str, Any], theirs: Sequence[Cell], mine: Sequence[Cell]) -> str:
    """How the method's text compares with the baseline's; empty where that cannot be asked."""
    if table["label"] == BASELINE:
        return ""
    if not table.get("lossless", True):
        return "lossy"
    if run.plan["sampling"]["temperature"] > 0:
        return ""
    margins = {
        ((d.sample, d.repeat), d.turn): Margin(reference=d.baseline_below_best, method=d.method_below_best)
        for d in run.divergences
        if d.method == table["label"]
    }
    base = {(c.sample, c.repeat): c for c in theirs if c.status == "ok"}
    own = {(c.sample, c.repeat): c for c in mine if c.status == "ok"}
    both = base.keys() & own.keys()
    limit = tie_limit(str(run.plan.get("resolved", {}).get("dtype", "float32")))
    return compare(_outputs(base, both), _outputs(own, both), tie_limit=limit, margins=margins).output


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


def _unpaired(theirs: Iterable[Cell], mine: Iterable[Cell]) -> tuple[str, ...]:
    """Say how many turns both sides have and yet no paired figure rests on."""
    base = {(cell.sample, cell.repeat): cell for cell in theirs if cell.status == "ok"}
    both = [(base[c.sample, c.repeat], c) for c in mine if c.status == "ok" and (c.sample, c.repeat) in base]
    turns = sum(min(len(a.turns), len(b.turns)) for a, b in both)
    left = turns - sum(_shared_turns(a, b) for a, b in both)
    if not left:
        return ()
    return (f"{left} of {turns} turns not paired with the baseline: an earlier answer and so the prompt differs",)


def _conditions(run: StoredRun) -> dict[str, str]:
    plan, resolved = run.plan, run.plan.get("resolved", {})
    sampling = plan["sampling"]
    decoding = (
        "greedy"
        if sampling["temperature"] == 0
        else (
            f"temperature {sampling['temperature']:g}, top-p {sampling['top_p']:g}, top-k {sampling['top_k'] or 'all'}"
        )
    )
    packages = run.environment.get("packages", {})
    conditions = {
        "decoding": decoding,
        "max new tokens": str(plan["max_new_tokens"]),
        "batch size": "1",
        "dtype": str(resolved.get("dtype", plan["dtype"])),
        "device": str(resolved.get("device", plan["device"])),
        "threads": str(run.environment.get("threads")),
        "template": str(resolved.get("template", plan["template"])),
        "seed": str(plan["seed"]),
        "rounds": str(plan["repeats"]),
        "samples": ", ".join(f"{s['name']} {s['samples']}" for s in plan["suites"]),
        "suite hash": ", ".join(f"{s['name']} {s['content_hash'][:12]}" for s in plan["suites"]),
        "weights": str(plan.get("model_fingerprint", ""))[:12],
        "software": ", ".join(
            f"{name} {packages[name]}" for name in ("draftboard", "torch", "transformers") if name in packages
        ),
    }
    return {name: value for name, value in conditions.items() if value}


def _notes(run: StoredRun) -> tuple[str, ...]:
    notes = list(run.warnings)
    for suite in run.plan["suites"]:
        notes += [f"{suite['name']}: {note}" for note in suite.get("notes", ())]
    wanted = len(run.samples) * len(run.plan["methods"]) * int(run.plan["repeats"])
    if run.verdict is not None:
        notes += [f"not valid for claims: {reason}" for reason in run.verdict["reasons"]]
    if len(run.cells) < wanted:
        notes.append(f"unfinished: {len(run.cells)} of {wanted} cells; go on with draftboard run --resume")
    return tuple(notes)
