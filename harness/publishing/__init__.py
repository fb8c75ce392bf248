"""Runs made public: what goes out, what never does, and where it goes."""

from draftboard.publishing.collect import Publication, collect
from draftboard.publishing.hub import upload
from draftboard.publishing.static import static_files

__all__ = ["Publication", "collect", "static_files", "upload"]
