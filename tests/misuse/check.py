#!/usr/bin/env python3
"""Compiles each case of tests/misuse twice: as it is it must compile; with -DMISUSE it must not, and the compiler must say the phrase.

    check.py CXX SOURCE_DIR [--flags "FLAGS"] [CASE...]

The first line of a case names the phrase: `// refused: REGULAR EXPRESSION`, matched within the lines of the compiler's errors.
Compiling the corrected text keeps a case from passing for a wrong reason. Exit codes: 0 good, 1 a case does not hold.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "// refused: "


def compile_case(compiler, flags, case, misuse):
    command = [*compiler, *flags, *(["-DMISUSE"] if misuse else []), str(case)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "LC_ALL": "C"})


def fault_of(compiler, flags, case):
    """What is wrong with a case, or None."""
    first = case.read_text(encoding="utf-8").split("\n", 1)[0]
    if not first.startswith(MARK):
        return f"its first line does not begin with '{MARK}'"
    phrase = first.removeprefix(MARK)
    good = compile_case(compiler, flags, case, misuse=False)
    if good.returncode != 0:
        return "the corrected text does not compile:\n" + good.stderr
    bad = compile_case(compiler, flags, case, misuse=True)
    if bad.returncode == 0:
        return "the misuse compiles"
    errors = [line for line in bad.stderr.splitlines() if "error:" in line]
    if not any(re.search(phrase, line) for line in errors):
        return f"no error says '{phrase}':\n" + "\n".join(errors)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiler", help="of C++, for the host")
    parser.add_argument("root", type=Path, help="the repository")
    parser.add_argument("--flags", default="")
    parser.add_argument("cases", nargs="*", help="names of files without .cpp; all when none is given")
    given = parser.parse_args()
    folder = given.root / "tests" / "misuse"
    cases = sorted(path for path in folder.glob("*.cpp") if not given.cases or path.stem in given.cases)
    if not cases:
        sys.exit(f"no case in {folder}" + (f" is named {', '.join(given.cases)}" if given.cases else ""))
    with tempfile.TemporaryDirectory() as work:
        # What all cases include is read once: most of the time would go there.
        flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror=unused-result", "-I", str(given.root / "include"), "-I", str(given.root),
                 *shlex.split(given.flags)]
        header = Path(work) / "case.hpp"
        header.write_text('#include "tests/misuse/case.hpp"\n', encoding="utf-8")
        compiler = shlex.split(given.compiler)
        made = subprocess.run([*compiler, *flags, "-x", "c++-header", str(header), "-o", f"{header}.gch"], capture_output=True, text=True, timeout=300)
        if made.returncode != 0:
            sys.exit("what all cases include does not compile:\n" + made.stderr)
        flags = [*flags, "-include", str(header), "-fsyntax-only"]
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            faults = list(pool.map(lambda case: fault_of(compiler, flags, case), cases))
    for case, fault in zip(cases, faults):
        if fault:
            print(f"{case.name}: {fault}")
    print(f"{len(cases)} cases of misuse, {sum(1 for fault in faults if fault)} not refused as they should be")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
