"""hplan from Python: its commands as functions that return what --json prints, and its databases as tables.

    import hplan
    found = hplan.simulate(net="cnn", image=28, gpus=2, machine="local", batch=64)
    found["candidates"][0]["step_s"]
    hplan.run("plan.db", steps=20)["final"]["images_per_s"]
    hplan.read("run.db")["steps"]       # a table, or a view of views.sql

Tables are pandas DataFrames where pandas is installed, else lists of dicts. A command's options are keyword arguments
with _ for -: batch_per_gpu=4 is --batch-per-gpu 4, all=True is --all, strategy=["dp=2", "stages=2"] gives it twice.
"""
from .commands import COMMANDS, Error, Result, call, program
from .tables import Database, frame, read

__all__ = ["COMMANDS", "Database", "Error", "Result", "call", "frame", "program", "read", *COMMANDS]


def __getattr__(name):
    """hplan.simulate, hplan.compare, ...: each command of COMMANDS."""
    if name not in COMMANDS:
        raise AttributeError(f"module 'hplan' has no attribute '{name}'")

    def command(*words, **options):
        return call(name, *words, **options)

    command.__name__ = command.__qualname__ = name
    command.__doc__ = f"hplan {name} WORDS --OPTION VALUE ... --json; `hplan help {name}` lists the options."
    return command
