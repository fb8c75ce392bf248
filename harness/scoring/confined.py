"""What runs in the child process: it shuts itself in, then runs one program and its checks.

A script of the standard library alone, started twice. `enter` leaves the world behind: new user, network, process,
mount, IPC and host-name namespaces, every file system read-only but one small folder in memory, no devices, no other
processes in sight. It has rights inside those namespaces, so it only starts `run`, which has none, may start no
process, and runs the code. The kernel ends whatever is left when the first process of the namespace ends.

That the checks ran to their end is told by a secret that `run` reads after them; an exit code of 0 tells nothing.
"""

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, NoReturn

TIMED_OUT, NOT_CONFINED = 124, 99

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PDEATHSIG, _SET_SECCOMP, _SET_NO_NEW_PRIVS, _SECCOMP_FILTER = 1, 22, 38, 2
_CLONE_THREAD = 0x10000
_INNER_ID = 1000
"""Not 0: a user who is root inside would get its rights back by starting a program."""

# Audit number of the architecture, clone, and the other calls that start a process.
_STARTERS = {"x86_64": (0xC000003E, 56, (57, 58)), "aarch64": (0xC00000B7, 220, ())}
_CLONE3 = 435
_ENOSYS, _EPERM = 38, 1


class Refused(Exception):
    """The system does not let this process be confined."""


def _call(what: str, result: int) -> None:
    if result != 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


def confine(folder: str, memory_bytes: int) -> None:
    """Move this process out of everything but reading files; `folder` becomes an empty one in memory.

    Processes forked from here on are in a new process namespace. Raises Refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    spaces = _NEWUSER | _NEWNS | _NEWNET | _NEWPID | _NEWIPC | _NEWUTS
    _call("no new namespaces", libc.unshare(spaces))
    try:
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{_INNER_ID} {uid} 1"),
            ("gid_map", f"{_INNER_ID} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib takes its time to load
                file.write(line)
    except OSError as error:
        raise Refused(f"no user of its own: {error.strerror}") from error

    def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
        texts = [text.encode() for text in (source, target, kind, data)]
        _call(f"mount of {target}", libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]))

    def attributes(target: str, how: int, *, on: int = 0, off: int = 0) -> None:
        wanted = struct.pack("QQQQ", on, off, 0, 0)
        done = libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), how, wanted, ctypes.c_size_t(len(wanted)))
        _call(f"read-only {target}", done)

    mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    mount("/dev/null", "/dev/null", "", _MS_BIND)
    attributes("/", _AT_RECURSIVE, on=_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)
    attributes("/dev/null", 0, off=_ATTR_RDONLY | _ATTR_NODEV)
    mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={memory_bytes},mode=700")
    os.chdir(folder)
    for hidden in ("/proc", "/run"):
        if os.path.isdir(hidden):  # noqa: PTH112 - as above
            mount("tmpfs", hidden, "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, "size=0")


def limit(limits: dict[str, int]) -> None:
    """Bound what this process may use. Hard limits that are lower already stay."""
    for kind, wanted in (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def forbid_processes() -> None:
    """Let this process start threads but no process: the kernel does not hold root to a number of processes.

    Raises Refused for root on a machine whose call numbers are not known here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    _call("no new rights", libc.prctl(_SET_NO_NEW_PRIVS, one, none, none, none))
    known = _STARTERS.get(os.uname().machine)
    if known is None:
        if os.geteuid() == 0:
            raise Refused(f"processes cannot be limited for root on {os.uname().machine}; run as another user")
        return
    architecture, clone, others = known
    load, equal, at_least, masked, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, kill = 0x7FFF0000, 0x50000 | _EPERM, 0x80000000
    steps: list[tuple[int, int, int, int]] = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, kill)]
    steps += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, deny)]
    for number in others:
        steps += [(equal, 0, 1, number), (give, 0, 0, deny)]
    # The C library takes ENOSYS as a hint to use clone, whose flags can be read.
    steps += [(equal, 0, 1, _CLONE3), (give, 0, 0, 0x50000 | _ENOSYS)]
    steps += [(equal, 0, 3, clone), (load, 0, 0, 16), (masked, 1, 0, _CLONE_THREAD), (give, 0, 0, deny)]
    steps += [(give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    _call("no filter of calls", libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_FILTER), program, none, none))


def _start(arguments: list[str], limits: dict[str, int]) -> NoReturn:
    """Become the process that runs the code: limits first, then a new interpreter, which has no rights."""
    limit(limits)
    forbid_processes()
    # Not -I, which would also ignore the one variable that makes the order of sets the same in every run.
    options = ["-S", "-P", "-s", "-B"]
    command = [sys.executable, *options, __file__, "run", *arguments]
    os.execve(sys.executable, command, {"PYTHONHASHSEED": "0"})


def _await(pid: int, wall_s: float) -> int:
    """Return a child's exit code, 128 + signal if one ended it, or end it when its time is up."""
    handle = os.pidfd_open(pid)
    ended = select.select([handle], [], [], wall_s)[0]
    if not ended:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return _code(status) if ended else TIMED_OUT


def _code(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _forked(child: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = child()
        finally:
            os._exit(code)
    return pid


def enter(job: int, secret: int, result: int, folder: str, limits: dict[str, int], *, isolated: bool) -> int:
    """Confine this process, run the job in it and return its exit code."""
    arguments = [str(job), str(secret), str(result)]

    def worker() -> int:
        try:
            _start(arguments, limits)
        except Refused as error:
            return _refuse(result, error)

    def first() -> int:
        ctypes.CDLL(None).prctl(_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        return _code(os.waitpid(_forked(worker), 0)[1])

    try:
        if isolated:
            confine(folder, limits["file_bytes"])
    except Refused as error:
        return _refuse(result, error)
    return _await(_forked(first if isolated else worker), limits["wall_s"])


def _refuse(result: int, error: Refused) -> int:
    os.write(result, json.dumps({"refused": str(error)}).encode())
    return NOT_CONFINED


def run(job: int, secret: int, result: int) -> None:
    """Run the first program that compiles, then its tests, and write what came of it."""
    with os.fdopen(job, encoding="utf-8") as file:
        work = json.load(file)
    tests = compile(work["tests"], "<tests>", "exec")
    program = next((units for units in map(_compiled, work["programs"]) if units is not None), None)
    told: dict[str, Any] = {"outcome": "syntax"}
    if program is not None:
        module = ModuleType("program")
        sys.modules["program"] = module
        try:
            for unit in (*program, tests):
                exec(unit, module.__dict__)
        except AssertionError:
            told = {"outcome": "failed"}
        except BaseException as error:  # noqa: BLE001 - whatever the code raises, leaving included, is its result
            told = {"outcome": "error", "error": type(error).__name__}
        else:
            told = {"outcome": "passed", "secret": os.read(secret, 100).decode("ascii")}
    os.write(result, json.dumps(told).encode())
    # Nothing that the code left behind (threads, exit handlers) is waited for.
    os._exit(0)


def _compiled(units: list[str]) -> list[CodeType] | None:
    try:
        return [compile(unit, "<program>", "exec") for unit in units]
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _main(arguments: list[str]) -> int:
    job, secret, result = map(int, arguments[1:4])
    if arguments[0] == "run":
        run(job, secret, result)
    return enter(job, secret, result, arguments[4], json.loads(arguments[5]), isolated=arguments[6] == "isolated")


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
