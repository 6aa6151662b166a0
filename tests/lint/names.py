"""names.py - one name, one thing: no two sources, guards or types of a header share a name. Tests mirror the sources' folders instead."""
import collections
import pathlib
import re

GUARD = re.compile(r"^#ifndef (\w+)$", re.M)
TYPE = re.compile(r"^typedef (?:struct|enum|union) (\w+) \{|^\} (\w+);", re.M)


def product(tree):
    return [f for f in tree.c_files() if not f.startswith("tests/")]


def stems(tree):
    """stem -> folders with a source of that name; a source and its header are one."""
    found = collections.defaultdict(list)
    for path in product(tree):
        pure = pathlib.PurePath(path)
        if str(pure.parent) not in [str(pathlib.PurePath(f).parent) for f in found[pure.stem]]:
            found[pure.stem].append(path)
    return found


def run(tree):
    for paths in stems(tree).values():
        for path in paths[1:]:
            yield f"{path}: {paths[0]} has the name; prefix it with what the folder is"
    types = {}
    for path in (f for f in tree.c_files(".h") if f != "tests/lint/analyser.h"):
        text, pure = tree.text(path), pathlib.PurePath(path)
        wanted = ("HP_TESTS_" if path.startswith("tests/") else "HP_") + re.sub(r"\W", "_", pure.name).upper()
        guard = GUARD.search(text)
        if not guard or guard.group(1) != wanted:
            yield f"{path}: the guard is {guard.group(1) if guard else 'missing'}, not {wanted}"
        if not path.startswith("tests/"):
            for name in {a or b for a, b in TYPE.findall(text)}:
                if types.setdefault(name, path) != path:
                    yield f"{path}: {types[name]} defines {name}, too"
