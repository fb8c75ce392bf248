"""The one way in which bad input is told: what, where, what to do. The CLI turns it into exit code 2."""

__all__ = ["UserError"]


class UserError(Exception):
    """Bad input from the outside: a plan, a file, a name, a machine. Never a bug of ours.

    `problems` lists every fault found, one line each, so that an input file is reported in one go.
    """

    def __init__(self, what: str, *, where: str = "", advice: str = "", problems: tuple[str, ...] = ()) -> None:
        self.what, self.where, self.advice, self.problems = what, where, advice, problems
        told = ["  " + problem.replace("\n", "\n    ") for problem in problems]
        lines = [f"{where}: {what}" if where else what, *told]
        super().__init__("\n".join([*lines, advice] if advice else lines))
