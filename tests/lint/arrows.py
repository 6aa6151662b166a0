"""arrows.py - which folder may include which.

Two tables: the folders' SEES lists in CMake (with what those folders see in turn), and the coarse one in the
README ("may include"). Every direct include must be allowed by both. The compiler checks most of the first;
this also checks what it cannot: headers seen only by way of another folder, device code that is compiled with
everything in sight, and libraries whose headers are installed everywhere.
"""
import pathlib
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# headers of libraries -> the only folders that may use them
LIBRARIES = {
    "gsl/": ("traces/check", "costmodels", "sim", "cli", "tests"),  # GPL-3: hplan-exec must not link it
    "mpi.h": ("exec", "tests"),
    "oneapi/": ("exec", "tests"),
    "cuda": ("exec/cuda", "tests"),
    "cudnn": ("exec/cuda", "tests"),
    "cublas": ("exec/cuda", "tests"),
    "nccl": ("exec/cuda", "tests"),
}


def below(folder, top):
    return folder == top or folder.startswith(top + "/")


def cmake_sees(tree):
    """folder -> folders of its SEES list."""
    sees = {}
    for path in tree.files:
        if path.endswith(".cmake") or path.endswith("CMakeLists.txt"):
            text = re.sub(r"#[^\n]*", "", tree.text(path))
            for words in re.findall(r"^[ \t]*hp_folder\(([^)]*)\)", text, re.M):
                words = words.split()
                if words and re.fullmatch(r"[\w/]+", words[0]):
                    listed, on = [], False
                    for word in words[1:]:
                        if re.fullmatch(r"[A-Z]+", word):
                            on = word == "SEES"
                        elif on:
                            listed.append(word)
                    sees[words[0]] = listed
    return sees


def closure(sees, folder, seen=None):
    seen = set() if seen is None else seen
    for other in sees.get(folder, []):
        if other not in seen:
            seen.add(other)
            closure(sees, other, seen)
    return seen


def coarse_table(tree):
    """folder -> (may include, never), from the README's table of folders."""
    table = {}
    for name, cell in re.findall(r"^\| `([\w/]+?)/?` \|[^|\n]*\| ([^|\n]*) \|$", tree.text("README.md"), re.M):
        may, _, never = cell.partition("never")
        table[name] = [[w.strip("/`") for w in re.findall(r"[\w/`]+", part)] for part in (may, never)]
    return table


def coarse_error(table, folder, other):
    rows = [name for name in table if below(folder, name)]
    if not rows:
        return f"the README's table has no row for {folder}/"
    row = max(rows, key=len)
    may, never = table[row]
    if any(below(other, name) for name in never):
        return f"the README says that {row}/ never includes {other}/"
    if "all" in may or below(other, row) or any(below(other, name) for name in may):
        return None
    return f"the README says that {row}/ includes only {', '.join(may)}"


def library_error(folder, header):
    for prefix, folders in LIBRARIES.items():
        if header.startswith(prefix) and not any(below(folder, f) for f in folders):
            return f"<{header}> is for {', '.join(folders)}"
    return None


def run(tree):
    table, sees = coarse_table(tree), cmake_sees(tree)
    if not table:
        yield "README.md: no table of folders with 'may include'"
        return
    tops = {f.split("/")[0] for f in tree.files if "/" in f}
    reach = {folder: closure(sees, folder) | {folder} for folder in sees}
    for path in tree.c_files():
        folder = str(pathlib.PurePath(path).parent)
        text = tree.text(path)
        for m in INCLUDE.finditer(text):
            header, at = m.group(2), f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
            error = library_error(folder, header)
            if header.split("/")[0] in tops and "/" in header:
                other = str(pathlib.PurePath(header).parent)
                error = coarse_error(table, folder, other) if folder != other else None
                if not error and sees.get(folder) is not None and other not in reach[folder]:
                    if folder.split("/")[0] != "cli":
                        error = f"{folder} does not see {other} (SEES in CMake)"
            if error:
                yield f"{at}: {header}: {error}"
