"""The names of all figures: title, unit, direction and digits. One table, so that no two pages say it differently."""

from dataclasses import replace

from draftboard.metric_kinds import Metric
from draftboard.metrics_output import ACCEPTANCE, DETAILS, QUALITY
from draftboard.metrics_serving import serving
from draftboard.metrics_speed import LATENCIES, MACHINE, RATES, SPEEDUPS, TIME

__all__ = ["METRICS", "Metric", "metric"]

METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        *SPEEDUPS,
        *ACCEPTANCE,
        *RATES,
        *LATENCIES,
        *TIME,
        *MACHINE,
        *QUALITY,
        *DETAILS,
        *serving(),
    )
}


_DIFFERENCE = "_difference"


def metric(name: str) -> Metric:
    """Return the metric of that name.

    `whole/part` is a detail of the metric `whole` (`bleu/zh`), shown as it is, and `whole_difference` what the method
    has of it less the baseline; an unknown name (from a plug-in) is a quality figure under its own name.
    """
    known = METRICS.get(name)
    if known is not None:
        return known
    if name.endswith(_DIFFERENCE) and name != _DIFFERENCE:
        less = metric(name.removesuffix(_DIFFERENCE))
        title, about = f"{less.title}, difference", f"less the baseline's, on the answers that both have: {less.about}"
        return replace(less, name=name, title=title, kind="quality_detail", about=about.removesuffix(": "))
    whole, slash, part = name.partition("/")
    if not slash:
        return Metric(name=name, title=name, kind="quality")
    base = METRICS.get(whole, Metric(name=whole, title=whole, kind="quality"))
    return replace(base, name=name, title=f"{base.title} ({part})", kind="quality_detail")
