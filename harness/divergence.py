"""Why two outputs differ: the target's own scores where a method's text first leaves the baseline's.

Asked once a sample's cells are there, outside every timed region, with one teacher-forced forward a divergence.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from draftboard.files import JsonLines
from draftboard.plan import BASELINE
from draftboard.records import Cell, Divergence
from draftboard.store import DIVERGENCES, StoredRun

if TYPE_CHECKING:
    from draftboard.session import Session

__all__ = ["Divergences"]


class Divergences:
    """Follows the cells of a greedy run and writes down every first difference. Sampling runs have none."""

    def __init__(self, out: Path, session: Session, stored: StoredRun | None) -> None:
        self._session = session
        self._active = session.plan.sampling.greedy
        self._file = JsonLines(out / DIVERGENCES) if self._active else None
        self._known = {(d.method, d.sample, d.repeat) for d in stored.divergences} if stored else set()
        self._waiting: dict[tuple[str, int], dict[str, Cell]] = {}
        for cell in stored.cells if stored else ():
            self.add(cell)

    def add(self, cell: Cell) -> None:
        """Take a finished cell; compare it once the baseline's is there too."""
        if not self._active or cell.status != "ok":
            return
        group = self._waiting.setdefault((cell.sample, cell.repeat), {})
        group[cell.method] = cell
        baseline = group.get(BASELINE)
        if baseline is None:
            return
        for method in [name for name in group if name != BASELINE]:
            self._compare(baseline, group.pop(method))

    def _compare(self, baseline: Cell, cell: Cell) -> None:
        if cell.key in self._known:
            return
        for index, (ours, theirs) in enumerate(zip(baseline.turns, cell.turns, strict=False)):
            if ours.prompt_sha256 != theirs.prompt_sha256:
                return
            pairs = enumerate(zip(ours.token_ids, theirs.token_ids, strict=False))
            place = next((at for at, (mine, other) in pairs if mine != other), None)
            if place is not None:
                self._write(baseline, cell, index, place)
                return

    def _write(self, baseline: Cell, cell: Cell, index: int, place: int) -> None:
        import torch

        ours, theirs = baseline.turns[index], cell.turns[index]
        ids = [*self._prompt(baseline, index), *ours.token_ids[:place]]
        with torch.inference_mode():
            logits = self._session.target.prefill(ids).logits[-1].double()
        best, second = logits.topk(2).values.tolist()
        mine, other = ours.token_ids[place], theirs.token_ids[place]
        record = Divergence(
            method=cell.method,
            sample=cell.sample,
            repeat=cell.repeat,
            turn=index,
            place=place,
            baseline_token=mine,
            method_token=other,
            gap=best - second,
            baseline_below_best=best - float(logits[mine]),
            method_below_best=best - float(logits[other]),
        )
        if self._file is not None:
            self._file.append(msgspec.json.encode(record))

    def _prompt(self, cell: Cell, index: int) -> list[int]:
        sample = next(s for suite, s in self._session.plan.samples if f"{suite.name}/{s.sample_id}" == cell.sample)
        answers = [turn.text for turn in cell.turns[:index]]
        return self._session.reader.prompt(sample, answers)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
