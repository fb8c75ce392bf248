"""Pages from `templates`: every value that is not markup of ours is escaped on its way into one.

A page's Content-Security-Policy admits its own scripts and its style sheet by their hashes and nothing else.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from draftboard.leaderboards.page_scripts import resource, source_hash
from draftboard.leaderboards.text import html_text

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render_page"]


def render_page(template: str, *, title: str, style: str, scripts: Sequence[str], **values: Any) -> str:
    """Return the page that a template makes of these values; `style` and `scripts` are ours and stand as they are."""
    from markupsafe import Markup

    return (
        _templates()
        .get_template(template)
        .render(
            title=title,
            style=Markup(style),
            style_hash=source_hash(style),
            scripts=[Markup(script) for script in scripts],
            script_hashes=[source_hash(script) for script in scripts],
            **values,
        )
    )


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["breakable"] = _breakable
    return environment


def _shown(value: object) -> object:
    """Escape every value of a template but what is ours and marked so."""
    from markupsafe import Markup

    return Markup(html_text(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(text: str) -> object:
    """Let a heading break behind slashes and underscores, where a reader would."""
    from markupsafe import Markup

    return Markup(re.sub(r"(?<=[/_])(?=\w\w)", "<wbr>", html_text(text)))
