"""excerpts.py - code that a document quotes is in the file it names: every line of a block that begins with
"```c path" is a line of that file, in the same order. A line of three dots stands for what was left out."""
import re

BLOCK = re.compile(r"^```c (\S+)\n(.*?)^```", re.M | re.S)


def run(tree):
    for path in tree.documents():
        for m in BLOCK.finditer(tree.text(path)):
            source, number = m.group(1), tree.text(path).count("\n", 0, m.start()) + 1
            if source not in tree.files:
                yield f"{path}:{number}: there is no {source}"
                continue
            rest = iter([line.strip() for line in tree.text(source).split("\n")])
            for line in m.group(2).split("\n"):
                number += 1
                if line.strip() not in ("", "...") and line.strip() not in rest:
                    yield f"{path}:{number}: not in {source}, or not in this order: {line.strip()}"
                    break
