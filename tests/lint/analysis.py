"""analysis.py - clang-tidy (.clang-tidy) and cppcheck (cppcheck.txt) on the C files that changed.

Both want build/compile_commands.json and what the build generates. A changed header stands for the C file of its
name. clang's static analyzer takes seconds a file: where more than FEW files changed it is left out. With --all
everything runs on every file: minutes.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

WARNING = re.compile(r"^(\S+?):(\d+):(?:\d+:)? (?:warning|error|style|performance|portability): (.*)$", re.M)

FEW = 20
STATUS = "base/status.c"


def compiled(tree):
    """C file -> its entry in compile_commands.json, the first where there are several."""
    path = tree.build / "compile_commands.json"
    if not path.exists():
        return {}
    entries = {}
    for entry in json.loads(path.read_text()):
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), tree.root)
        entries.setdefault(name, entry)
    return entries


def to_check(tree, entries):
    wanted = set()
    for path in tree.changed():
        pure = pathlib.PurePath(path)
        if pure.suffix == ".c":
            wanted.add(path)
        elif pure.suffix == ".h":
            wanted.add(str(pure.with_suffix(".c")))
    return sorted(path for path in wanted if path in entries)


def warnings(tree, output):
    for path, line, text in WARNING.findall(output):
        name = os.path.relpath(os.path.realpath(os.path.join(tree.root, path)), os.path.realpath(tree.root))
        alike = name.endswith(".def") and "[bugprone-branch-clone]" in text  # rows of a table may say the same
        if name in tree.files and not alike:
            yield f"{name}:{line}: {text}"


def tidy(tree, path, checks):
    known = pathlib.Path(__file__).resolve().parent / "analyser.h"
    told = [] if path == STATUS or STATUS not in tree.files else [f"--extra-arg=-include{known}"]
    done = subprocess.run(["clang-tidy", "--quiet", "-p", str(tree.build), "--extra-arg=-Wno-unknown-warning-option",
                           "--extra-arg=-Wno-error", *told, *checks, path],
                          cwd=tree.root, capture_output=True, text=True)
    return list(warnings(tree, done.stdout))


def cppcheck(tree, entry, path):
    options = [w for w in re.findall(r"(?<=\s)-[DI]\s*\S+", entry.get("command", ""))]
    here = pathlib.Path(__file__).resolve().parent
    done = subprocess.run(["cppcheck", "--quiet", "--std=c11", "--enable=warning,performance,portability",
                           "--inline-suppr", f"--suppressions-list={here / 'cppcheck.txt'}", *options,
                           "--template={file}:{line}: {severity}: {message} [{id}]", path],
                          cwd=tree.root, capture_output=True, text=True)
    return list(warnings(tree, done.stderr))


def run(tree):
    entries = compiled(tree)
    if not entries:
        tree.note(f"there is no {tree.build / 'compile_commands.json'}: clang-tidy and cppcheck are left out")
        return []
    tools = [tool for tool in ("clang-tidy", "cppcheck") if shutil.which(tool)]
    for tool in {"clang-tidy", "cppcheck"} - set(tools):
        tree.note(f"{tool} is not installed: left out")
    files = to_check(tree, entries)
    checks = [] if tree.everything or len(files) <= FEW else ["--checks=-clang-analyzer-*"]
    tree.note(f"{' and '.join(tools) or 'no analyser'} on {len(files)} files"
              + (", without clang's static analyzer: they are many (--all runs it)" if checks else ""))

    def check(path):
        found = tidy(tree, path, checks) if "clang-tidy" in tools else []
        return found + (cppcheck(tree, entries[path], path) if "cppcheck" in tools else [])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return sorted({line for found in pool.map(check, files) for line in found})
