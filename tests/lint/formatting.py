"""formatting.py - every C and CUDA file is as clang-format 14 writes it with .clang-format."""
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor


def run(tree):
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not program:
        tree.note("clang-format is not installed (Debian: clang-format): not checked")
        return
    files = tree.c_files(".c", ".h", ".cu", ".cuh", ".cc", ".inc")
    jobs = os.cpu_count() or 1

    def check(some):
        done = subprocess.run([program, "--dry-run", "--style=file", *some], cwd=tree.root, capture_output=True,
                              text=True)
        return re.findall(r"^(\S+?):(\d+):\d+: (?:warning|error)", done.stderr, re.M)

    first = {}
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(check, [files[i::jobs] for i in range(jobs) if files[i::jobs]]):
            for path, line in found:
                first.setdefault(path, line)
    for path, line in sorted(first.items()):
        yield f"{path}:{line}: not as clang-format writes it: clang-format -i {path}"
