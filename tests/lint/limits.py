"""limits.py - a file has one idea: no source file over 500 lines, no folder over 40 files."""
import collections
import pathlib

LINES, FILES = 500, 40


def run(tree):
    for path in sorted(set(tree.c_files() + tree.scripts())):
        lines = tree.text(path).count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines, the limit is {LINES}"
    folders = collections.Counter(str(pathlib.PurePath(f).parent) for f in tree.files)
    for folder, count in sorted(folders.items()):
        if count > FILES:
            yield f"{folder}/: {count} files, the limit is {FILES}"
