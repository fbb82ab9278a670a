"""Finds a Python that has matplotlib: the one that runs, else the system's, where distributions install it."""
import importlib.util
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"
NO_MATPLOTLIB = 3  # exit code; the slipstream program knows it


def has_matplotlib():
    """Can matplotlib be imported? Starts this script again with the system's Python when this one lacks it."""
    if importlib.util.find_spec("matplotlib") is not None:
        return True
    if "SLIPSTREAM_PLOT_AGAIN" not in os.environ and os.path.exists(SYSTEM_PYTHON):
        os.environ["SLIPSTREAM_PLOT_AGAIN"] = "1"
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    return False


def need_matplotlib(program):
    """Returns when matplotlib can be imported."""
    if has_matplotlib():
        return
    print(f"{program}: matplotlib is missing; install it (Debian, Ubuntu: apt-get install python3-matplotlib) and run this again",
          file=sys.stderr)
    sys.exit(NO_MATPLOTLIB)
