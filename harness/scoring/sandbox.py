"""Running code that a model wrote: in a child process that `confined` shuts in, or not at all.

What a model wrote may delete files, call home or never end. It is run only where the kernel can keep it from all of
that (Linux with user namespaces), unless the user vouches for the machine: `unisolated` is for a container that is
itself the sandbox.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Literal

from draftboard.errors import UserError

__all__ = ["LIMITS", "Limits", "Outcome", "RunCode", "require_sandbox", "run_program"]

RunCode = bool | Literal["unisolated"]
"""Whether answers may be run as programs; `unisolated`: even where they cannot be kept from network and files."""

Outcome = Literal["passed", "failed", "error", "syntax", "timeout", "refused"]
"""`failed`: a check did not hold; `error`: anything else went wrong, leaving early included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may use."""

    cpu_s: int = 5
    wall_s: int = 20
    memory_bytes: int = 1 << 30
    """Of address space."""
    file_bytes: int = 32 << 20
    """Of one file, and of all files together where the folder is in memory."""
    processes: int = 32
    """Threads included."""
    files: int = 64


LIMITS = Limits()


def require_sandbox(run_code: RunCode) -> None:
    """Raise UserError unless code can be run here in the way asked for."""
    if sys.platform != "linux":
        raise UserError(
            f"code is run on Linux only, and this is {sys.platform}",
            advice="Score the run on a Linux machine: the folder of a run can be copied.",
        )
    refused = _refusal("unisolated" if run_code == "unisolated" else "isolated")
    if refused:
        raise UserError(
            f"code cannot be kept from network and files here: {refused}",
            advice=(
                "Allow user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "
                "kernel.apparmor_restrict_unprivileged_userns), or score in a container without network that holds "
                "nothing of value, with --run-code --unisolated."
            ),
        )


@lru_cache(maxsize=2)
def _refusal(way: Literal["isolated", "unisolated"]) -> str:
    """Return why a harmless program cannot be run in that way, or nothing."""
    outcome, told = _run([["x = 1\n"]], "assert x == 1\n", LIMITS, isolated=way == "isolated")
    return "" if outcome == "passed" else told or f"a program that should pass ended with {outcome!r}"


def run_program(
    programs: Sequence[Sequence[str]], tests: str, *, run_code: RunCode = True, limits: Limits = LIMITS
) -> Outcome:
    """Run the first of `programs` (units, run in turn in one module) that compiles, and then `tests`.

    `passed` means that the tests ran to their end. Call `require_sandbox` first. Linux only.
    """
    return _run(programs, tests, limits, isolated=run_code != "unisolated")[0]


def _run(programs: Sequence[Sequence[str]], tests: str, limits: Limits, *, isolated: bool) -> tuple[Outcome, str]:
    """Return the outcome and, for `refused`, the reason."""
    token = secrets.token_hex(16)
    with (
        TemporaryDirectory(prefix="draftboard-", ignore_cleanup_errors=True) as folder,
        TemporaryFile() as job,
        TemporaryFile() as result,
    ):
        job.write(json.dumps({"programs": [list(units) for units in programs], "tests": tests}).encode())
        job.seek(0)
        reading, writing = os.pipe()
        try:
            os.write(writing, token.encode("ascii"))
            os.close(writing)
            handles = (job.fileno(), reading, result.fileno())
            way = "isolated" if isolated else "unisolated"
            code = _spawn([*map(str, handles), folder, json.dumps(asdict(limits)), way], handles, folder, limits)
        finally:
            os.close(reading)
        return _verdict(code, os.pread(result.fileno(), 4096, 0), token)


def _spawn(arguments: Sequence[str], handles: tuple[int, ...], folder: str, limits: Limits) -> int:
    """Return the exit code of the confined child; whatever it left of its group is ended too."""
    from draftboard.scoring import confined  # of Linux alone

    script = str(Path(confined.__file__))
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", script, "enter", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={},
        pass_fds=handles,
        start_new_session=True,
    )
    try:
        # The child keeps the time itself; this is for a child that cannot.
        return child.wait(limits.wall_s + 10)
    except subprocess.TimeoutExpired:
        return confined.TIMED_OUT
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _verdict(code: int, told: bytes, token: str) -> tuple[Outcome, str]:
    from draftboard.scoring import confined

    if code in (confined.TIMED_OUT, 128 + signal.SIGXCPU, 128 + signal.SIGKILL):
        return "timeout", ""
    try:
        said = json.loads(told)
    except ValueError:  # nothing, or what the code itself wrote there
        return "error", ""
    if not isinstance(said, dict):
        return "error", ""
    if code == confined.NOT_CONFINED:
        return "refused", str(said.get("refused", ""))
    match said.get("outcome"):
        case "passed":
            return ("passed", "") if said.get("secret") == token else ("error", "")
        case "failed":
            return "failed", ""
        case "syntax":
            return "syntax", ""
    return "error", ""
