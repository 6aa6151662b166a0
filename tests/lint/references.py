"""references.py - files and folders that comments and documents name exist.

A bare name is a file's name or the end of a path in this tree, a path is one from the top or from the file's own
folder; *, {a,b} and NAME stand for some. Names of others' files: headers that some file includes in angle brackets, and
external.txt beside this file.
"""
import fnmatch
import itertools
import pathlib
import re

SUFFIXES = "c|h|cu|cuh|cc|inc|def|md|sh|py|cmake|mjs|proto"
NAME = re.compile(r"(?<![\w./*{},<>$~%-])(?:\.\./)*((?:[\w.*-]|\{[\w.,*-]+\}|/)*[\w*}]\.(?:\{[\w,]+\}|(?:" + SUFFIXES + r")\b))(?![\w(])")
FOLDER = r"(?<![\w./*{},<>$~%-])((?:TOPS)/(?:[\w.*/-]|\{[\w.,*-]+\})*)"


def expand(name):
    m = re.search(r"\{([^{}]*)\}", name)
    if not m:
        return [name]
    return list(itertools.chain.from_iterable(
        expand(name[:m.start()] + part + name[m.end():]) for part in m.group(1).split(",")))


class Names:
    def __init__(self, tree):
        here = pathlib.Path(__file__).resolve().parent
        self.paths = set(tree.files)
        for f in tree.files:
            self.paths.update(str(p) for p in pathlib.PurePath(f).parents)
        self.base = {pathlib.PurePath(f).name for f in tree.files}
        self.external = {line.split("#")[0].strip() for line in (here / "external.txt").read_text().splitlines()}
        for f in tree.c_files():
            for header in re.findall(r"^[ \t]*#[ \t]*include[ \t]*<([^>]+)>", tree.text(f), re.M):
                self.external |= {header, pathlib.PurePath(header).name}
        self.known = {}

    def has(self, name, folder):
        key = name if name in self.paths else (name, folder)
        if key not in self.known:
            self.known[key] = self.search(name, folder)
        return self.known[key]

    def search(self, name, folder):
        name = re.sub(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])", "*", name).rstrip("/") if name not in self.base else name
        if name in self.paths or name in self.base or name in self.external:
            return True
        if "*" in name:
            return any(fnmatch.fnmatch(p, name) or fnmatch.fnmatch(p, "*/" + name) for p in self.paths)
        beside = str(pathlib.PurePath(folder, name))
        return beside in self.paths or any(p.endswith("/" + name) for p in self.paths)


def lines_of(tree, path):
    if path.endswith(".md"):
        return enumerate(tree.text(path).split("\n"), 1)
    return tree.comments(path)


def run(tree):
    names = Names(tree)
    tops = sorted({f.split("/")[0] for f in tree.files if "/" in f and not f.startswith(".")})
    folders = re.compile(FOLDER.replace("TOPS", "|".join(map(re.escape, tops)))) if tops else None
    for path in sorted(set(tree.c_files() + tree.scripts() + tree.documents())):
        folder = str(pathlib.PurePath(path).parent)
        for number, line in lines_of(tree, path):
            found = set(NAME.findall(line))
            if folders:
                found |= {name.rstrip(".-") for name in folders.findall(line)}
            for name in sorted(found):
                for one in expand(name):
                    if not any(names.has(one + s, folder) for s in ("", ".c", ".h", ".cu")):
                        yield f"{path}:{number}: there is no {one}"
