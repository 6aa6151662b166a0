"""limits.py - a file has one idea: no source file over 500 lines, no folder over 40 files. Lines with comments end
at clang-format's column, which breaks code alone."""
import collections
import pathlib

LINES, FILES, COLUMNS = 500, 40, 110


def wide_comments(tree):
    for path in sorted(tree.c_files()):
        line = tree.text(path).split("\n")
        for number in sorted({n for n, _ in tree.comments(path)}):
            if len(line[number - 1]) > COLUMNS:
                yield f"{path}:{number}: a comment of {len(line[number - 1])} columns, the limit is {COLUMNS}"


def run(tree):
    for path in sorted(set(tree.c_files() + tree.scripts())):
        lines = tree.text(path).count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines, the limit is {LINES}"
    folders = collections.Counter(str(pathlib.PurePath(f).parent) for f in tree.files)
    for folder, count in sorted(folders.items()):
        if count > FILES:
            yield f"{folder}/: {count} files, the limit is {FILES}"
    yield from wide_comments(tree)
