"""line_width.py ROOT: no line of C++ or CUDA is wider than .clang-format says. Lines within raw string literals, which are what they are, may be."""
import pathlib
import re
import sys

FOLDERS = ("device", "host", "include", "tests", "tools", "workloads")
ENDINGS = (".hpp", ".cpp", ".cuh", ".cu")

root = pathlib.Path(sys.argv[1])
limit = int(re.search(r"^ColumnLimit: (\d+)$", (root / ".clang-format").read_text(), re.M)[1])
files = sorted(f for folder in FOLDERS for f in (root / folder).rglob("*") if f.suffix in ENDINGS)
if len(files) < 100:
    sys.exit(f"{root}: only {len(files)} files of C++; is this the root of the repository?")
wide = []
for file in files:
    text = file.read_text()
    raw = [(text.count("\n", 0, m.start()), text.count("\n", 0, m.end())) for m in re.finditer(r'R"(\w*)\(.*?\)\1"', text, re.S)]
    for number, line in enumerate(text.split("\n")):
        if len(line) > limit and not any(first <= number <= last for first, last in raw):
            wide.append(f"{file.relative_to(root)}:{number + 1}: {len(line)} columns, at most {limit}")
print("\n".join(wide) or f"{len(files)} files, no line over {limit} columns")
sys.exit(1 if wide else 0)
