"""test_names.py ROOT: no test's name has its first ": " so far right that Catch2 2 cannot print it. It indents what follows as far, and
where too few of its 80 columns are left it prints blanks without end: a test that fails would fill the disk."""
import pathlib
import re
import sys

INDENT_MOST = 72  # seen: 80 does not come to an end

root = pathlib.Path(sys.argv[1]) / "tests"
literal = r'"((?:[^"\\]|\\.)*)"'
names = 0
bad = []
for file in sorted(f for f in root.rglob("*") if f.suffix in (".cpp", ".cu", ".hpp")):
    text = file.read_text()
    for case in re.finditer(rf"\b(?:TEST_CASE|SECTION)\(\s*{literal}((?:\s*{literal})*)", text):
        name = case[1] + "".join(re.findall(literal, case[2]))
        names += 1
        if name.find(": ") > INDENT_MOST:
            bad.append(f"{file.relative_to(root.parent)}:{text.count(chr(10), 0, case.start()) + 1}: "
                       f"': ' behind {name.find(': ')} characters, at most {INDENT_MOST}")
if names < 300:
    sys.exit(f"{root}: only {names} tests found; is this the root of the repository?")
print("\n".join(bad) or f"{names} tests, all names can be printed")
sys.exit(1 if bad else 0)
