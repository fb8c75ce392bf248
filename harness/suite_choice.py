"""Which samples of which suites a plan runs on: part, categories, ids and limit, as the options say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from draftboard.options import RunOptions
from draftboard.suites import (
    Split,
    Suite,
    SuiteError,
    SuiteSettings,
    limited,
    load_suite,
    of_categories,
    of_ids,
    part_of,
    read_ids,
    settings_of,
    split,
)

__all__ = ["category_names", "choose_suites"]


def choose_suites(
    options: RunOptions, given: Sequence[Suite], problems: list[str]
) -> tuple[list[Suite], dict[str, Split]]:
    """Load the suites and choose of them what was asked for; return them, and splits by suite where a part was named.

    `given` are loaded already. What is wrong is added to `problems`.
    """
    specs = options.suite or (() if given else ("mini",))
    settings = SuiteSettings(shots=options.shots, qa_references=options.qa_references, seed=options.seed or 0)
    loaded: list[Suite] = list(given)
    used: set[str] = set()
    for spec in specs:
        try:
            used |= settings_of(spec)
            loaded.append(load_suite(spec, settings))
        except SuiteError as error:
            problems.append(str(error))
    if len(loaded) == len(given) + len(specs):
        named = ", ".join([*(suite.name for suite in given), *specs])
        problems += [f"{name}: none of the suites uses it ({named})" for name in sorted(settings.said() - used)]
    loaded = _renamed(loaded, problems)
    ids = _ids(options, loaded, problems)
    found: list[Suite] = []
    splits: dict[str, Split] = {}
    for suite in loaded:
        try:
            if options.part is not None:
                splits[suite.name] = split(suite, seed=options.seed or 0)
            found.append(_chosen(suite, loaded, options, splits.get(suite.name), ids))
        except SuiteError as error:
            problems.append(str(error))
    return found, splits


def category_names(values: Sequence[str] | None, suites: Sequence[Suite]) -> tuple[str, ...]:
    """Names from repeated and comma-separated values; a name that itself holds a comma is taken as a whole."""
    known = {name for suite in suites for name in _categories(suite)}
    parts = [name for value in values or () for name in ([value] if value in known else value.split(","))]
    return tuple(name if name in known else name.strip() for name in parts if name.strip())


def _chosen(
    suite: Suite, suites: Sequence[Suite], options: RunOptions, found: Split | None, ids: Sequence[str]
) -> Suite:
    """Return what the options leave of a suite: part, then categories, then ids, then the limit."""
    if found is not None and options.part is not None:
        suite = part_of(suite, options.part, found)
    if options.category is not None:
        # A category that only other suites have is theirs; one that none has is told by every suite.
        elsewhere = {name for other in suites if other.name != suite.name for name in _categories(other)}
        said = category_names(options.category, suites)
        names = [name for name in said if name in _categories(suite) or name not in elsewhere]
        suite = of_categories(suite, names or said)
    if ids:
        suite = of_ids(suite, ids)
    if options.limit is not None and options.limit >= 1:
        suite = limited(suite, options.limit, options.seed or 0)
    return suite


def _categories(suite: Suite) -> set[str]:
    return {name for s in suite.samples for name in (s.domain, s.group, s.category) if name is not None}


def _ids(options: RunOptions, suites: Sequence[Suite], problems: list[str]) -> tuple[str, ...]:
    if not options.ids:
        return ()
    if len(suites) > 1:
        problems.append("ids: a list of ids needs a run over one suite; this one has " + str(len(suites)))
        return ()
    try:
        return read_ids(options.ids)
    except SuiteError as error:
        problems.append(str(error))
        return ()


def _renamed(suites: Sequence[Suite], problems: list[str]) -> list[Suite]:
    """Tell suites of one name apart by their files; what cannot be told apart is a problem."""
    names = [suite.name for suite in suites]
    told = [
        replace(suite, name=f"{suite.name}({Path(suite.source).stem})") if names.count(suite.name) > 1 else suite
        for suite in suites
    ]
    after = [suite.name for suite in told]
    doubled = sorted({old for old, new in zip(names, after, strict=True) if after.count(new) > 1})
    if doubled:
        problems.append(f"suite {', '.join(doubled)} is named more than once; a run holds each suite once")
    return told
