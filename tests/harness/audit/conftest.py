"""A method that writes a wrong token at a known place, and the tiny run that it is part of."""

from pathlib import Path

import pytest

FAULTY = '''
from dataclasses import dataclass
from draftboard.methods import Method, register
from draftboard.methods.engine import LOSSLESS, RootOnly

@register("faulty")
@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty(Method):
    """Plain decoding whose third step writes what the target likes least."""
    def drafter(self, binding):
        return RootOnly()
    def verifier(self):
        return Wrong()

class Wrong:
    lossless = True
    def __init__(self):
        self.steps = 0
    def judge(self, tree, scores, sampling, generator):
        self.steps += 1
        path, bonus = LOSSLESS.judge(tree, scores, sampling, generator)
        return path, int(scores.logits[path[-1]].argmin()) if self.steps == 3 else bonus
'''


@pytest.fixture
def faulty(tmp_path: Path, fresh_registry: None) -> Path:
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY, encoding="utf-8")
    return path
