"""What a user may ask of a suite beyond its name: the one argument of a loader."""

from dataclasses import dataclass, field

__all__ = ["Request", "SuiteSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """Settings that loaders share. A loader reads those that it lists as used; the others do not concern it."""

    shots: int | None = None
    """Examples before a question; None is the suite's own number."""
    qa_references: str | None = None
    """File with answers for rows that a suite's own file gives none for."""
    seed: int = 0
    """For suites that are drawn from a larger set."""

    def said(self) -> frozenset[str]:
        """Names of the settings that differ from their defaults; a seed is every suite's."""
        empty = SuiteSettings()
        return frozenset(name for name in ("shots", "qa_references") if getattr(self, name) != getattr(empty, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`NAME[/VARIANT][@PATH]` taken apart."""

    name: str
    variant: str | None = None
    """One of the variants that the suite lists; None where none was said."""
    path: str | None = None
    """A file, a folder, or `hf://OWNER/NAME[@REVISION]`."""
    settings: SuiteSettings = field(default_factory=SuiteSettings)
