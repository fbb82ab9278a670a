"""links.py ROOT: every relative link of every Markdown file leads to a file that is there, and to a heading of it where it names one."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
files = sorted(f for f in root.rglob("*.md") if not any(p.startswith((".", "build")) for p in f.relative_to(root).parts))
if len(files) < 20:
    sys.exit(f"{root}: only {len(files)} Markdown files; is this the root of the repository?")


def headings(file):
    """The anchors of a file's headings, as GitHub makes them."""
    out = set()
    for line in re.sub(r"^```.*?^```", "", file.read_text(), flags=re.S | re.M).split("\n"):
        if heading := re.match(r"#+ +(.*)", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            same = sum(a == anchor or re.fullmatch(re.escape(anchor) + r"-\d+", a) is not None for a in out)
            out.add(f"{anchor}-{same}" if same else anchor)
    return out


broken, links = [], 0
for file in files:
    for number, line in enumerate(file.read_text().split("\n")):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            to = (file.parent / path).resolve() if path else file
            where = f"{file.relative_to(root)}:{number + 1}: {target}"
            if not to.exists():
                broken.append(f"{where}: there is no such file")
            elif anchor and anchor not in headings(to / "README.md" if to.is_dir() else to):
                broken.append(f"{where}: there is no such heading")
print("\n".join(broken) or f"{len(files)} files, {links} links, all of them lead somewhere")
sys.exit(1 if broken or not links else 0)
