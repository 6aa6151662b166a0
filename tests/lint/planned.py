"""planned.py - what help and documents list either exists, or is planned: a row of cli/later.def, exit status 69.

Tries every row with the built hplan; compares the tables of the documents with what the program says it has, both
ways; looks up every `hplan COMMAND` and --option that a document mentions.
"""
import os
import re
import subprocess
import tempfile

LATER = re.compile(r'^LATER\((\w+), "([^"]+)", "[^"]+"\)', re.M)
COMMAND = re.compile(r"^COMMAND\((\w+),", re.M)

# kind of a row -> the command line that asks for it
ASK = {
    "command": lambda name: [name],
    "option": lambda name: [*name.split(), *(["plan.db"] if name.startswith("run ") else [])],
    "key": lambda name: ["simulate", "--strategy", name],
    "precision": lambda name: ["simulate", "--prec", name],
    "network": lambda name: ["simulate", "--net", name],
    "plot": lambda name: ["plot", name, "none.db"],
}

# heading of a document's table -> kind of its first column
TABLES = {"Commands": "command", "Networks": "network", "Plots": "plot", "Keys": "key", "Exit codes": "exit_code"}


class Program:
    """The built hplan, run in an empty folder."""

    def __init__(self, tree):
        self.path = (tree.build / "hplan").resolve()
        self.there = os.access(self.path, os.X_OK)

    def run(self, words):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([str(self.path), *words], cwd=folder, capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr


def exit_codes(tree):
    """value -> name, of status.h."""
    return {value: name for name, value in
            re.findall(r"^\s+(HP_\w+) = (\d+),?\s", tree.text("base/status.h"), re.M)}


def used(tree, word):
    return any(re.search(rf"\b{word}\b", tree.text(f)) for f in tree.c_files(".c", ".cu")
               if not f.startswith("tests/"))


def existing(tree, program):
    """kind -> names that this version has, as the program says them."""
    has = {"command": set(COMMAND.findall(tree.text("cli/commands.def"))),
           "exit_code": {value for value, name in exit_codes(tree).items() if used(tree, name) or value == "0"}}
    networks = re.search(r"known are (.*)", program.run(["simulate", "--net", "?"])[1])
    plots = re.search(r"there are (.*)", program.run(["plot", "?", "x.db"])[1])
    keys = re.findall(r"^  (\w+)=", program.run(["help", "strategies"])[1], re.M)
    if keys:
        has["key"] = set(keys)
    if networks:
        has["network"] = {re.split(r"[:N]", re.sub(r"\(.*?\)", "", n).strip())[0]
                          for n in re.sub(r"\([^)]*\)|:[A-Z](,[A-Z])*", "", networks.group(1)).split(",")}
    if plots:
        has["plot"] = {w.strip() for w in plots.group(1).split(",")}
    return has


def try_rows(tree, program, rows):
    for kind, name in rows:
        if kind == "exit_code":
            code = exit_codes(tree).get(name)
            if code and used(tree, code):
                yield f"cli/later.def: exit code {name} is planned, but {code} is used"
        elif kind not in ASK:
            yield f"cli/later.def: there is no kind '{kind}'"
        else:
            code, text = program.run(ASK[kind](name))
            if code != 69:
                yield f"cli/later.def: hplan {' '.join(ASK[kind](name))}: exit status {code}, expected 69: {text[:120]}"


def marked_in_help(tree, program, rows):
    """Options that a help text marks as missing have a row."""
    for command in COMMAND.findall(tree.text("cli/commands.def")):
        for option, text in re.findall(r"(--[\w-]+)((?:(?!\n +-).)*)", program.run(["help", command])[1], re.S):
            if re.search(r"not\s+in\s+this\s+version", text):
                if ("option", f"{command} {option}") not in rows:
                    yield f"hplan help {command}: {option} is marked as missing and has no row in cli/later.def"


def tables(tree):
    """(document, line, kind, names, rest of the row) of every table under a heading of TABLES."""
    for path in tree.documents():
        kind = None
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            heading = re.match(r"#+ (.*)", line)
            if heading:
                kind = TABLES.get(heading.group(1).strip())
            cell = re.match(r"\| ([^|]*) \|(.*)", line)
            names = re.findall(r"`([^`]+)`", cell.group(1)) or re.findall(r"\b\d+\b(?!\+)", cell.group(1)) if cell else []
            if kind and names:
                yield path, number, kind, names, cell.group(2)


def compare_tables(tree, program, rows):
    has, told = existing(tree, program), {}
    for path, number, kind, names, rest in tables(tree):
        for name in names:
            name = re.split(r"[=:N]", name)[0] if kind in ("network", "key") else name
            told.setdefault(kind, set()).add(name)
            planned = any(k == kind and n.split("=")[0] == name for k, n in rows)
            if planned != ("(planned)" in rest):
                yield f"{path}:{number}: {kind} {name}: " + ("planned, which the row does not say" if planned else
                                                             "marked as planned, without a row in cli/later.def")
            if not planned and kind == "key":
                if "unknown key" in program.run(["simulate", "--strategy", name + "=1"])[1]:
                    yield f"{path}:{number}: strategies have no key {name}"
            elif not planned and kind in has and name not in has[kind]:
                yield f"{path}:{number}: there is no {kind} {name}"
    for kind in has:
        for name in sorted(has[kind] - told.get(kind, has[kind])):
            yield f"documents: the tables do not list the {kind} {name}"


def options_in_sources(tree):
    found = {"--help", "--usage", "--version"}
    for path in tree.c_files(".c", ".h", ".def"):
        if path.startswith(("cli/", "exec/run/")):
            found |= {"--" + word for word in re.findall(r'\{"([a-z][\w-]*)",', tree.text(path))}
    return found


def mentions(tree, rows):
    """`hplan ...` in documents: its command and its options."""
    commands = set(COMMAND.findall(tree.text("cli/commands.def"))) | {"help"}
    options = options_in_sources(tree)
    later = {name for _, name in rows}
    for path in tree.documents():
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            for words in re.findall(r"(?:(?<=`)|^\$ |^|\| |&& )hplan (\S[^`|&]*)", line):
                words = words.split()
                name = words[0]
                if re.fullmatch(r"[a-z]+", name) and name not in commands and name not in later:
                    if line.lstrip().startswith(("$", "hplan")) or f"`hplan {name}" in line:
                        yield f"{path}:{number}: there is no command hplan {name}"
                for option in words:
                    option = option.split("=")[0]
                    if re.fullmatch(r"--[a-z][\w-]*", option) and option not in options:
                        if f"{name} {option}" not in later:
                            yield f"{path}:{number}: hplan {name} has no option {option}"


def run(tree):
    rows = LATER.findall(tree.text("cli/later.def"))
    if not rows:
        yield "cli/later.def: no rows"
    yield from mentions(tree, rows)
    program = Program(tree)
    if not program.there:
        tree.note(f"{program.path} is not built: planned rows and tables are not tried")
        return
    yield from try_rows(tree, program, rows)
    yield from marked_in_help(tree, program, rows)
    yield from compare_tables(tree, program, rows)
