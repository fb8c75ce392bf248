"""Sides of a comparison from seconds, without a run: what the gate's tests plant slowdowns in."""

import numpy as np

from draftboard.gate import Side, TimedTurn
from draftboard.gate.sides import Measured


def one_turn(seconds, tokens=64, *, prompt="p", cpu=None, kept=63, steps=40):
    return TimedTurn(prompt=prompt, tokens=tokens, wall_s=seconds, cpu_s=cpu, kept=kept, steps=steps)


def side(name, methods, *, domains=None, conditions=None, baseline="autoregressive", **other):
    """`methods`: label → {(sample, round): turns}; what else a method is, under `of` (label → fields)."""
    of = other.pop("of", {})
    samples = {sample for cells in methods.values() for sample, _ in cells}
    return Side(
        name=name,
        conditions={"hardware": "here", "dtype": "float32"} if conditions is None else conditions,
        methods={
            label: Measured(
                label=label,
                baseline=baseline,
                cells=cells,
                **{"output": "identical", **of.get(label, {})},
            )
            for label, cells in methods.items()
        },
        domains=domains or dict.fromkeys(samples, "qa"),
        **other,
    )


def simulated(
    name, *, seed, samples=48, rounds=3, domains=6, slower=0.0, noise=0.03, drift=0.05, cpu_slower=0.0, **other
):
    """A side of a plausible run: lengths, speeds and speedups of samples vary, every cell has its own noise, and each
    round its own state of the machine. `slower`: share of the method's speed that is lost."""
    fixed, own = np.random.default_rng(1234), np.random.default_rng(seed)
    tokens = fixed.integers(40, 129, samples)
    pace = fixed.lognormal(np.log(0.02), 0.2, samples)
    speedup = fixed.lognormal(np.log(1.5), 0.3, samples)
    methods: dict[str, dict] = {"autoregressive": {}, "samd": {}}
    for number in range(rounds):
        state = own.lognormal(0, drift)
        for index in range(samples):
            count = int(tokens[index])
            base = pace[index] * count * state
            for label, seconds, loss in (("autoregressive", base, 0.0), ("samd", base / speedup[index], slower)):
                wall = seconds / (1 - loss) * own.lognormal(0, noise)
                cpu = seconds / (1 - cpu_slower * bool(loss)) * own.lognormal(0, noise)
                methods[label][f"s{index}", number] = [one_turn(wall, count, cpu=cpu)]
    return side(name, methods, domains={f"s{index}": f"d{index % domains}" for index in range(samples)}, **other)
