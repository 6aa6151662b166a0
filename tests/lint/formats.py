"""formats.py - docs/formats.md describes every table and column of the databases, field of a machine, kind of row.

Both ways: what the code has is described, and what is described exists.
"""
import re

DOCUMENT = "docs/formats.md"


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
    text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', tree.text("plan/base/schema.c").split("hp_db_schema[]")[1]))
    tables = {}
    for name, body in re.findall(r"CREATE TABLE (\w+)\((.*?)\) STRICT", text):
        body = re.sub(r"PRIMARY KEY\([^)]*\)", "", body)
        tables[name] = [c.split()[0] for c in body.split(",") if c.strip()]
    return tables


def in_code(tree):
    lists = schema(tree)
    fields = re.findall(r'FIELD\("(\w*)", "(\w+)"', tree.text("plan/machine/json.c"))
    lists["Machine files"] = [f"{group}.{key}" if group else key for group, key in fields]
    rows = tree.text("costmodels/table.c").split("hp_row_infos")[1].split("};")[0]
    lists["history.db"] = re.findall(r"^(?:TEXT|COUNT|TIME|FIGURE)\((\w+)\)", tree.text("traces/ledger.def"), re.M)
    lists["Rows"] = re.findall(r'= \{"(\w+)"', rows)
    return lists


def run(tree):
    if DOCUMENT not in tree.files:
        yield f"there is no {DOCUMENT}"
        return
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
