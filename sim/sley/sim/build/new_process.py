"""Calls a function in a new interpreter, so that its code is what the source files say now.

A module in memory is what its file said when it was imported, which may be long ago: an entry of the cache must not be
made by it and named after the file.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sley.abi.transport import EngineError

P = ParamSpec("P")
Result = TypeVar("Result")

PROGRAM = "import sys; sys.path[:] = {path!r}; from sley.sim.build.new_process import answer; answer()"


def in_new_process(function: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
    """What the function of that name in that module returns. Arguments and result are pickled.

    An ``EngineError`` is raised here too; any other exception is shown on stderr, and an ``EngineError`` here. Modules
    are looked for where this process looks for them. What the function prints goes to stderr. Assertions are off:
    Amaranth has some for every bit of a netlist, which take a quarter of the time to make its text.
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


def answer() -> None:
    """The other side: one call from stdin, one answer to stdout."""
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    function, arguments, named = pickle.load(sys.stdin.buffer)
    result, failure = None, None
    try:
        result = function(*arguments, **named)
    except EngineError as error:
        failure = error
    output.write(pickle.dumps((result, failure)))
