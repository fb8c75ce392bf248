"""The card of a publication: metadata that the hub reads, and the board that people read."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from draftboard.leaderboards.markdown import markdown
from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.text import markdown_text, terminal_text
from draftboard.metrics import metric
from draftboard.results import Group, Results

__all__ = ["card"]

_TAGS = ("draftboard", "speculative-decoding", "benchmark", "leaderboard")
_METRICS = ("acceptance_length", "tokens_per_s")
"""What is stated of each ranked method beside the figure that ranks it."""
_ABOUT = {
    "index.html": "`index.html`: the board as a page that needs no network; download and open it.",
    "leaderboard.md": "`leaderboard.md`, `.tex`, `.csv`, `.json`: the same board for other uses.",
    "spec-bench.md": "`spec-bench.md`: Spec-Bench's table as its own leaderboard prints it.",
    "leaderboard.parquet": "`leaderboard.parquet`: every figure with its n, its interval, or why there is none.",
    "data/": "`data/generations.parquet`: every answer, turn by turn, with its times and the trace of its steps.\n"
    "  Prompts and references stay with the suites; `sample` names them.",
    "runs/": "`runs/`: the plan, the record of the machine and the verdict of each run.",
}
"""What there is to say of the files whose names begin so."""
_TABLES = {"figures": "leaderboard.parquet", "generations": "data/generations.parquet"}


def card(results: Results, invalid: Sequence[str], files: Collection[str]) -> str:
    """Return the README.md of a repository with these files; where a run is not valid, its text opens with why."""
    from huggingface_hub import DatasetCard, DatasetCardData

    data = DatasetCardData(
        pretty_name=terminal_text(results.title),
        task_categories=["text-generation"],
        tags=list(_TAGS),
        configs=[{"config_name": name, "data_files": file} for name, file in _TABLES.items() if file in files],
    )
    data["model-index"] = _model_index(results)
    warning = f"**Not valid for claims.** {markdown_text(' / '.join(invalid))}\n\n" if invalid else ""
    told = [f"- {said}" for start, said in _ABOUT.items() if any(name.startswith(start) for name in files)]
    about = "\n".join(["## What is in this repository", "", *told])
    return str(DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{warning}{markdown(results)}\n{about}\n"))


def _model_index(results: Results) -> list[dict[str, Any]] | None:
    """Return the ranked figures in the form that the hub knows evaluation results in; one entry a target model."""
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    found: dict[str, list[EvalResult]] = {}
    for group in results.groups:
        found.setdefault(terminal_text(group.model) or "not stated", []).extend(_evaluations(group))
    index = [
        entry for model, entries in found.items() if entries for entry in eval_results_to_model_index(model, entries)
    ]
    return index or None


def _evaluations(group: Group) -> Iterator[Any]:
    from huggingface_hub import EvalResult

    suite = terminal_text(group.suite) or "not stated"
    for standing in standings(group, headline(group)):
        for name in (headline(group), *_METRICS):
            value = usable(standing.method.overall.get(name))
            if standing.rank is None or value is None:
                continue
            figure = standing.method.overall[name]
            arguments: dict[str, Any] = {"method": terminal_text(standing.method.method), "n": figure.n}
            if figure.interval is not None:
                arguments |= {"interval": [figure.interval.low, figure.interval.high], "level": figure.interval.level}
            if name == "speedup":
                arguments["baseline"] = terminal_text(group.baseline)
            yield EvalResult(
                task_type="text-generation",
                task_name="Speculative decoding",
                dataset_type=suite,
                dataset_name=suite,
                dataset_args={"hardware": terminal_text(group.hardware)},
                metric_type=name,
                metric_name=f"{metric(name).title}: {terminal_text(standing.method.method)}",
                metric_value=value,
                metric_args={key: said for key, said in arguments.items() if said is not None},
            )
