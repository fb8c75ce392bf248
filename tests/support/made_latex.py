"""What can be told of LaTeX without an engine: braces, columns, and that no command is there but our own."""

import re

STRUCTURE = {"begin", "end", "centering", "caption", "label", "item", "tnote", "textbf", "setlength", "tabcolsep"} | {
    "scriptsize",
    "small",
    "footnotesize",
    "toprule",
    "midrule",
    "bottomrule",
}
CHARACTERS = (
    {"textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textasciigrave"}
    | {"textendash", "textemdash", "textperiodcentered", "symbol", "texttt", "ensuremath"}
    | {"times", "leq", "geq", "approx", "to", "Delta", "alpha", "beta", "gamma", "tau"}
)
COMMANDS = STRUCTURE | CHARACTERS


def body(text):
    """The text without its comment lines."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("%"))


def tabulars(text):
    """The rows of each tabular, header first, without their ends."""
    found = re.findall(r"\\begin\{tabular\}\{[lr]+\}\n(.*?)\\end\{tabular\}", body(text), re.DOTALL)
    return [[line.removesuffix(r" \\") for line in part.splitlines() if line.endswith(r" \\")] for part in found]


def check_latex(text):
    """Fail on an unknown command, an unbalanced brace, a bare special character, or rows of different lengths."""
    source = body(text)
    assert set(re.findall(r"\\([A-Za-z]+)", source)) <= COMMANDS
    assert set(re.findall(r"\\([^A-Za-z])", source)) <= set("\\{}&%$#_")
    bare = re.sub(r"\\\\|\\[{}&%$#_]", "", source)
    assert not re.search(r"[%$#_~^\"`<>|]", bare)
    depth = 0
    for brace in re.findall(r"[{}]", bare):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert "&" not in re.sub(r"(?s)\\begin\{tabular\}.*?\\end\{tabular\}", "", bare)
    for part, kinds in zip(tabulars(text), re.findall(r"\\begin\{tabular\}\{([lr]+)\}", source), strict=True):
        assert part
        assert {len(re.findall(r"(?<!\\)&", row.replace(r"\\", ""))) for row in part} == {len(kinds) - 1}
