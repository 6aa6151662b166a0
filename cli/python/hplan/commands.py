"""commands.py - runs hplan with --json."""
import json
import os
import pathlib
import shutil
import subprocess

# those that print JSON
COMMANDS = ("doctor", "calibrate", "import_", "simulate", "explain", "why", "run", "status", "diagnose", "recover", "checkpoint",
            "tune", "experiments", "quantize", "bench", "eval", "history", "compare", "check", "plot", "report", "export")


class Error(Exception):
    """hplan refused: `code` is its exit code (3: no feasible plan, 65: bad input, ...), `result` what it printed as JSON, or None."""

    def __init__(self, code, message, result):
        super().__init__(message)
        self.code, self.result = code, result


class Result(dict):
    """A JSON object; `code` is the exit code, 1 where a difference or a regression was found."""

    code = 0


def program():
    """The hplan that is called: $HPLAN, else the one installed with this package, else the one on PATH."""
    installed = pathlib.Path(__file__).resolve().parents[4] / "bin" / "hplan"
    found = os.environ.get("HPLAN") or (str(installed) if installed.is_file() else shutil.which("hplan"))
    if not found:
        raise FileNotFoundError("there is no hplan on PATH; set HPLAN to the program")
    return found


def arguments(options):
    """--key value for each option; True: no value; False or None: left out; a list: once for each; as_ is --as."""
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            yield "--" + name.rstrip("_").replace("_", "-")
            if one is not True:
                yield str(one)


def parse(text):
    """One object; of a run, whose lines are a step each, the last as `final` and the others as `steps`."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not lines:
        return None
    if len(lines) == 1 and not lines[0].get("final"):
        return Result(lines[0])
    return Result(steps=lines[:-1], final=lines[-1])


def call(command, *words, **options):
    """hplan COMMAND WORDS... --OPTION VALUE... --json. Raises Error where it fails."""
    line = [program(), command.rstrip("_"), *map(str, words), *arguments({**options, "json": True})]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    result = parse(done.stdout)
    if done.returncode not in (0, 1) or result is None:
        raise Error(done.returncode, done.stderr.strip() or f"hplan {command} ended with {done.returncode}", result)
    result.code = done.returncode
    return result
