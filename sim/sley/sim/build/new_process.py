"""Calls a function in a new interpreter, so that its code is what the source files say now, and waits for it or not.

A module in memory is what its file said when it was imported, which may be long ago: an entry of the cache must not be
made by it and named after the file.
"""

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from sley.abi.transport import EngineError

P = ParamSpec("P")
Result = TypeVar("Result")

BACKGROUND = "import sys; sys.path[:] = {path!r}; from sley.sim.build.new_process import work; work()"

PROGRAM = "import sys; sys.path[:] = {path!r}; from sley.sim.build.new_process import answer; answer()"


def in_new_process(function: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
    """What the function of that name in that module returns. Arguments and result are pickled.

    An ``EngineError`` is raised here too; any other exception is shown on stderr, and an ``EngineError`` here. Modules
    are looked for where this process looks for them. What the function prints goes to stderr. Assertions are off:
    Amaranth has some for every bit of a netlist, which take a quarter of the time to make its text. There is no search
    for garbage: it would take a third of the time of a call that makes millions of objects, and the process ends.
    """
    path = [os.path.abspath(folder) for folder in sys.path]
    done = subprocess.run(
        [sys.executable, "-O", "-c", PROGRAM.format(path=path)],
        input=pickle.dumps((function, arguments, named)),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise EngineError(f"{function.__module__}.{function.__name__} ended with status {done.returncode}, see above")
    value, error = pickle.loads(done.stdout)
    if error is not None:
        raise error
    result: Result = value
    return result


def in_background(log: Path, function: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> None:
    """Calls the function in a process that outlives this one, at the lowest priority. ``log``: a file for what it
    prints, and for the reason if it fails; it is of the last process alone.

    For work that another call does again if it fails, or if the process is ended.
    """
    path = [os.path.abspath(folder) for folder in sys.path]
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-O", "-c", BACKGROUND.format(path=path)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(pickle.dumps((function, arguments, named)))
    process.returncode = 0  # nobody will wait for it, of which Python would warn


def work() -> None:
    """The other side of ``in_background``."""
    with suppress(AttributeError):  # Windows has no priorities of this kind
        os.nice(19)
    function, arguments, named = pickle.load(sys.stdin.buffer)
    function(*arguments, **named)


def answer() -> None:
    """The other side: one call from stdin, one answer to stdout."""
    gc.disable()
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    function, arguments, named = pickle.load(sys.stdin.buffer)
    result, failure = None, None
    try:
        result = function(*arguments, **named)
    except EngineError as error:
        failure = error
    output.write(pickle.dumps((result, failure)))
