"""formats.py - docs/formats.md describes every table and column of the databases, kind of row; docs/machines.md what machines say.

Both ways: what the code has is described, and what is described exists; of machines, the first.
"""
import re

DOCUMENT = "docs/formats.md"
MACHINES = "docs/machines.md"


def described(tree):
    """heading -> names in the first column of its table."""
    sections, heading = {}, None
    for line in tree.text(DOCUMENT).split("\n"):
        title = re.match(r"##+ `?([^`]*)`?$", line)
        if title:
            heading = title.group(1)
        cell = re.match(r"\| (`[^|]*`) \|", line)
        if cell and heading:
            sections.setdefault(heading, []).extend(re.findall(r"`([^`]+)`", cell.group(1)))
    return sections


def schema(tree):
    """table -> columns, of schema.c's string."""
    text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', tree.text("base/schema.c").split("hp_db_schema[]")[1]))
    tables = {}
    for name, body in re.findall(r"CREATE TABLE (\w+)\((.*?)\) STRICT", text):
        body = re.sub(r"PRIMARY KEY\([^)]*\)", "", body)
        tables[name] = [c.split()[0] for c in body.split(",") if c.strip()]
    return tables


def in_code(tree):
    lists = schema(tree)
    rows = tree.text("costmodels/table.c").split("hp_row_infos")[1].split("};")[0]
    lists["history.db"] = re.findall(r"^(?:TEXT|COUNT|TIME|FIGURE)\((\w+)\)", tree.text("traces/ledger.def"), re.M)
    lists["Rows"] = re.findall(r'= \{"(\w+)"', rows)
    return lists


def machines(tree):
    """Clauses and parts of a machine's text, but for links and rates, which are called as the link is."""
    text = tree.text("machines/machine_text.c")
    words = re.findall(r'FIELD\("([\w-]+)", "(\w*)"', text) + [("", key) for key in re.findall(r'DEVICE\("(\w+)"', text)]
    told = " ".join(re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", tree.text(MACHINES), re.M))))
    if not words:
        yield "machines: nothing found in the code: has its form changed?"
    for word in sorted({w for pair in words for w in pair} - {"", "link", "rate"}):
        if not re.search(rf"(?<![\w-]){word}(?![\w-])", told):
            yield f"{MACHINES}: machines have {word}, which is not described"


def run(tree):
    if DOCUMENT not in tree.files:
        yield f"there is no {DOCUMENT}"
        return
    yield from machines(tree)
    told = described(tree)
    for heading, names in in_code(tree).items():
        there = told.get(heading, [])
        if not names:
            yield f"{heading}: nothing found in the code: has its form changed?"
        for name in names:
            if name not in there:
                yield f"{DOCUMENT}: {heading} has {name}, which is not described"
        for name in there:
            if name not in names:
                yield f"{DOCUMENT}: {heading} has no {name}"
