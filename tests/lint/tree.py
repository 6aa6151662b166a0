"""tree.py - the files of a checkout: what git tracks and what it would add; text, comments, changes."""
import pathlib
import re
import subprocess
import sys

C_SUFFIXES = (".c", ".h", ".cu", ".cuh", ".cc", ".inc", ".def")
SCRIPT_SUFFIXES = (".py", ".sh", ".cmake", ".mjs")

# a comment, a string or a character: strings are matched so that no comment starts in them
C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SCRIPT_TOKEN = re.compile(r'""".*?"""|(?:(?<=\s)|^)#[^\n]*', re.S | re.M)


class Tree:
    def __init__(self, options):
        here = pathlib.Path(__file__).resolve().parent
        self.root = pathlib.Path(options.root) if options.root else here.parent.parent
        self.build = self.root / options.build
        self.everything = options.all
        self.base = options.base
        listed = self.git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        self.files = sorted(f for f in set(listed) if (self.root / f).is_file())

    def git(self, *words):
        done = subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, check=True)
        return done.stdout

    def note(self, text):
        print(f"lint: {text}", file=sys.stderr)

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def c_files(self, *suffixes):
        return [f for f in self.files if f.endswith(suffixes or C_SUFFIXES)]

    def scripts(self):
        """Shell, Python, CMake: by suffix, or without one by the first line."""
        return [f for f in self.files if f.endswith(SCRIPT_SUFFIXES) or pathlib.PurePath(f).name == "CMakeLists.txt"
                or ("." not in pathlib.PurePath(f).name and self.text(f).startswith("#!"))]

    def documents(self):
        return [f for f in self.files if f.endswith(".md")]

    def comments(self, path):
        """(line number, text) of every line of a comment."""
        text = self.text(path)
        for m in (C_TOKEN if path.endswith(C_SUFFIXES) else SCRIPT_TOKEN).finditer(text):
            if m.group()[0] in "/#" or m.group().startswith('"""'):
                first = text.count("\n", 0, m.start()) + 1
                for i, line in enumerate(m.group().split("\n")):
                    yield first + i, line

    def changed(self):
        """Files that differ from the base, or all."""
        if self.everything:
            return self.files
        base = self.git("merge-base", "HEAD", self.base).strip() if self.base else self.default_base()
        if not base:
            return self.files
        names = set(self.git("diff", "--name-only", base).splitlines())
        names |= set(self.git("ls-files", "--others", "--exclude-standard").splitlines())
        return [f for f in self.files if f in names]

    def default_base(self):
        head = self.git("rev-parse", "HEAD").strip()
        for main in ("main", "origin/main"):
            try:
                base = self.git("merge-base", "HEAD", main).strip()
            except subprocess.CalledProcessError:
                continue
            if base != head:
                return base
        try:
            return self.git("rev-parse", "--verify", "-q", "HEAD~1").strip()
        except subprocess.CalledProcessError:
            return None
