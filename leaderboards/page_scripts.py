"""What a page runs: its own scripts and the charting library, each admitted by its hash and by nothing else.

Data goes into blocks that no browser runs, written so that no text in them can end the block or be taken for markup.
"""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

__all__ = ["begin_chart_library", "chart_library", "json_block", "resource", "source_hash"]


def resource(name: str) -> str:
    """Return the text of a file of `templates`."""
    return files("draftboard.leaderboards").joinpath("templates", name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """Return what a Content-Security-Policy calls this script or style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


_BUNDLING = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@lru_cache(maxsize=1)
def begin_chart_library() -> subprocess.Popen[bytes]:
    """Start to make what `chart_library` returns, for a caller that has seconds of other work to do before.

    It takes seconds as well, and a thread would gain nothing: the interpreter's lock is held all the while.
    """
    return subprocess.Popen([sys.executable, "-c", _BUNDLING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _begun() -> str:
    """Return the bundle that was begun; empty where none was, or where it came to nothing."""
    if not begin_chart_library.cache_info().currsize:
        return ""
    process = begin_chart_library()
    bundle = process.communicate()[0]
    return "" if process.returncode else bundle.decode("utf-8")


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script, with the interpreter that needs no `eval`.

    Its names stay inside a function: minified, they would collide with any other script's.
    """
    import vl_convert

    versions = f"Vega {vl_convert.get_vega_version()}, vega-embed {vl_convert.get_vega_embed_version()}"
    notice = f"/*! {versions} and Vega-Lite. Copyright the Vega project's authors, BSD 3-Clause License. */\n"
    # The library's own types miss that it needs no snippet.
    bundle: str = _begun() or vl_convert.javascript_bundle()  # type: ignore[call-arg]
    bundle = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"{notice}(() => {{\n{bundle}\n}})();"


def json_block(data: Mapping[str, object]) -> str:
    r"""Return strict JSON for a script element of type `application/json`: ASCII, with `<`, `>` and `&` as `\u003c`…

    No text can then close the element or open a comment in it, and line separators and direction marks are inert.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
