"""How many rounds and samples it takes to see a difference, from the noise of the machine.

The rule that has to be satisfied is the one that results are reported by (suites-and-scoring 8.3, 8.4): the 95 %
interval over samples of the geometric mean over domains, widened on both sides by the noise floor, excludes 1. With R
rounds, D domains of k samples each and a true log ratio e, in log units:

    estimate  ~ N(e, se² + b²/R)             se = s / sqrt(D k R)
    floor     = mean over domains of the larger range that R round means of either arm have
                mean                m_R sqrt(a² + u²/k)
                standard deviation  v_R sqrt(a² + u²/(D k))
    power     = Phi((e - z se - mean) / sqrt(se² + b²/R + deviation²))

s: paired log ratio of one sample in one round; b: drift of the paired log ratio from round to round; u, a: the same
for one arm alone (all standard deviations). m_R and v_R are the mean and standard deviation of the larger of two
independent ranges of R standard normal numbers. The range of a normal sample is independent of its mean, which is why
the variances add. Taking the arms' drifts as independent overstates the floor of arms that drift together.

What it leaves out: samples on which the two methods truly differ by different amounts widen the interval further.
"""

import functools
from dataclasses import dataclass
from math import log1p, sqrt

from draftboard.statistics import LEVEL

__all__ = ["Design", "Layout", "Spread", "detectable", "power_of", "recommend"]

ROUNDS = range(3, 11)
"""An A/A comparison needs three rounds; beyond ten, more samples serve better."""
LEAST = 3
"""Samples of a domain: resampling fewer says little about their spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Noise of a machine, in log units (0.01 is about one percent), as standard deviations."""

    pair: float
    """Of the paired log ratio of one sample in one round (s)."""
    pair_drift: float
    """Of the drift of the paired log ratio from round to round (b)."""
    arm: float
    """Of the log seconds of one sample of one arm (u)."""
    arm_drift: float
    """Of the drift of one arm's log seconds from round to round (a)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Domains of equally many samples."""

    domains: int
    samples: int
    """Of each domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A size of measurement and what it can see."""

    rounds: int
    layout: Layout
    power: float
    """Chance that a true difference of the wanted size is reported as one."""


def power_of(spread: Spread, effect: float, *, layout: Layout, rounds: int) -> float:
    """Return the chance that a true log ratio of `effect` is reported as a difference (the formula of this module)."""
    from scipy.stats import norm

    widened, noise = _terms(spread, layout, rounds)
    if noise == 0:
        return 1.0 if effect > widened else 0.0
    return float(norm.cdf((effect - widened) / noise))


def detectable(spread: Spread, power: float, *, layout: Layout, rounds: int) -> float:
    """Return the smallest true log ratio that is reported as a difference with chance `power`."""
    from scipy.stats import norm

    widened, noise = _terms(spread, layout, rounds)
    return float(widened + norm.ppf(power) * noise)


def recommend(spread: Spread, difference: float, power: float, *, largest: Layout) -> Design | None:
    """Return the cheapest design that sees a speed ratio of 1 + `difference` with chance `power`, or None.

    All of `largest`'s domains are asked, at most as many samples of each as it has. Cheapest is fewest sample-rounds,
    then fewest rounds. None where even ten rounds of all samples do not see it.
    """
    effect = log1p(difference)
    found: list[tuple[int, int, int]] = []
    for rounds in ROUNDS:
        sees = (
            samples
            for samples in range(LEAST, largest.samples + 1)
            if detectable(spread, power, layout=Layout(domains=largest.domains, samples=samples), rounds=rounds)
            <= effect
        )
        samples = next(sees, None)
        if samples is not None:
            found.append((rounds * samples, rounds, samples))
    if not found:
        return None
    _, rounds, samples = min(found)
    layout = Layout(domains=largest.domains, samples=samples)
    return Design(rounds=rounds, layout=layout, power=power_of(spread, effect, layout=layout, rounds=rounds))


def _terms(spread: Spread, layout: Layout, rounds: int) -> tuple[float, float]:
    """Return (what an estimate has to exceed on average, standard deviation of the distance to it)."""
    from scipy.stats import norm

    samples = layout.domains * layout.samples
    error = spread.pair / sqrt(samples * rounds)
    mean, deviation = _larger_range(rounds)
    floor = mean * sqrt(spread.arm_drift**2 + spread.arm**2 / layout.samples)
    uncertain = deviation * sqrt(spread.arm_drift**2 + spread.arm**2 / samples)
    widened = float(norm.ppf((1 + LEVEL) / 2)) * error + floor
    return widened, sqrt(error**2 + spread.pair_drift**2 / rounds + uncertain**2)


@functools.cache
def _larger_range(rounds: int) -> tuple[float, float]:
    """Mean and standard deviation of the larger of two independent ranges of `rounds` standard normal numbers."""
    import numpy as np
    from scipy.integrate import trapezoid
    from scipy.stats import norm

    at = np.linspace(-8.0, 8.0, 801)
    width = np.linspace(0.0, 12.0, 1201)
    inside = norm.cdf(at[None, :] + width[:, None]) - norm.cdf(at)[None, :]
    one = trapezoid(rounds * norm.pdf(at) * inside ** (rounds - 1), at, axis=1)
    beyond = 1 - np.clip(one, 0.0, 1.0) ** 2
    mean = float(trapezoid(beyond, width))
    square = float(trapezoid(2 * width * beyond, width))
    return mean, sqrt(max(0.0, square - mean**2))
