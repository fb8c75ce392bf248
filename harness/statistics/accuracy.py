"""Whether two arms differ in how many of the same questions they answer right (McNemar 1947, exact form)."""

from collections.abc import Mapping

__all__ = ["mcnemar"]


def mcnemar(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return the exact two-sided p-value of equal accuracies, from the questions that one arm alone has right.

    By question, 1 for right and 0 for wrong; None where a shared question has any other value, or none is shared.
    """
    shared = first.keys() & second.keys()
    if not shared or any(arm[key] not in (0, 1) for arm in (first, second) for key in shared):
        return None
    gained = sum(second[key] > first[key] for key in shared)
    lost = sum(second[key] < first[key] for key in shared)
    if gained + lost == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost, 0.5).pvalue)
