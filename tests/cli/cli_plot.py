"""Figures: by `slipstream compare --plots`, and by tools/plot from a JSON. Needs matplotlib, else ends with 77: skipped."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import cli_harness
from cli_harness import CliTest, binary

TOOLS = Path(__file__).resolve().parents[2] / "tools"
GPU_RESULT = TOOLS.parent / "traces" / "results" / "optimiser_h200.h200.json"
NO_MATPLOTLIB, SKIPPED = 3, 77
QUICK = ("--device", "host", "--repeat", 2)


def plot(*arguments, **environment):
    return subprocess.run([TOOLS / "plot", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


class Plots(CliTest):
    def text_of(self, path):
        """All text of a well-formed SVG."""
        root = xml.etree.ElementTree.parse(path).getroot()
        return " ".join(text for text in root.itertext() if text.strip())

    def test_compare_draws_each_subject_all_of_them_and_each_sweep(self):
        folder = Path(self.path("plots"))
        self.run_cli("compare", "random-dag:tasks=40,width=4", "random-dag:tasks=50,width=4", *QUICK, "--plots", folder)
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["compare.json", "overview.svg", "random-dag-tasks-40-width-4.svg", "random-dag-tasks-50-width-4.svg"])
        for path in folder.glob("*.svg"):
            text = self.text_of(path)
            for expected in ("slipstream", "commit", "no GPU times"):
                self.assertIn(expected, text, path)
        self.assertIn("critical path", self.text_of(folder / "random-dag-tasks-40-width-4.svg"))

        swept = Path(self.path("swept"))
        self.run_cli("compare", "--sweep", "length=1,50", "--sweep", "window=16,32", "--sweep", "fan-in=0,2", "--tasks", 30, *QUICK, "--plots", swept)
        self.assertEqual(sorted(p.name for p in swept.glob("*.svg")),
                         [f"sweep-layered-dag-{axis}.svg" for axis in ("fan-in", "length", "window")])
        self.assertIn("measured once", self.text_of(swept / "sweep-layered-dag-window.svg"))

    def test_a_committed_gpu_result_is_drawn_with_its_hardware(self):
        source = GPU_RESULT
        done = plot(source, "--out", self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.text_of(self.path("optimiser-h200.svg"))
        commit = json.loads(source.read_text())["environment"]["commit"]
        for expected in ("NVIDIA H200", commit[:12], "graph-replay", "static", "with its building"):
            self.assertIn(expected, text)

    def test_the_same_numbers_make_the_same_file(self):
        source = GPU_RESULT
        for folder in ("a", "b"):
            self.assertEqual(plot(source, "--out", self.path(folder)).returncode, 0)
        self.assertEqual(*(Path(self.path(folder), "optimiser-h200.svg").read_bytes() for folder in ("a", "b")))

    def test_an_engine_that_did_not_verify_has_no_bar(self):
        result, _ = self.json_of("compare", "random-dag:tasks=40,width=4", *QUICK)
        result["subjects"][0]["runs"][1]["verified"] = False
        done = plot(self.write("wrong.json", result), "--out", self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("did not verify", self.text_of(self.path("random-dag-tasks-40-width-4.svg")))

    def test_figures_of_one_name_are_two_files(self):
        result, _ = self.json_of("compare", "random-dag:tasks=40,width=4", *QUICK)
        first, = result["subjects"]
        result["subjects"] = [first, {**first, "title": first["title"].upper()}, {**first, "title": ""}, {**first, "title": "overview"}]
        done = plot(self.write("same.json", result), "--out", self.path("same"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(p.name for p in Path(self.path("same")).iterdir()),
                         ["overview-2.svg", "overview.svg", "random-dag-tasks-40-width-4-2.svg", "random-dag-tasks-40-width-4.svg", "untitled.svg"])

    def test_png_for_those_who_cannot_show_svg(self):
        result, _ = self.json_of("compare", "random-dag:tasks=40,width=4", *QUICK)
        self.assertEqual(plot(self.write("r.json", result), "--out", self.folder.name, "--format", "png").returncode, 0)
        self.assertEqual(Path(self.path("random-dag-tasks-40-width-4.png")).read_bytes()[:4], b"\x89PNG")


class BadInput(CliTest):
    def refused_file(self, path, *names):
        done = plot(path, "--out", self.folder.name)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for name in (path, *names):
            self.assertIn(str(name), done.stderr)

    def test_a_file_that_holds_no_comparison(self):
        self.refused_file(self.path("absent.json"))
        self.refused_file(self.write("cut.json", "{"))
        self.refused_file(self.write("list.json", []))
        self.refused_file(self.write("bench.json", {"command": "bench chain"}), "bench chain", "compare")
        self.refused_file(self.write("empty.json", {"command": "compare"}), "subjects")

    def test_a_missing_matplotlib_is_named(self):
        # A Python that finds nothing but the standard library, and is not allowed to look for another one.
        done = subprocess.run([sys.executable, "-I", "-S", TOOLS / "plot", GPU_RESULT, "--out", self.folder.name],
                              capture_output=True, text=True, timeout=60, env={**os.environ, "SLIPSTREAM_PLOT_AGAIN": "1"})
        self.assertEqual(done.returncode, NO_MATPLOTLIB)
        self.assertIn("python3-matplotlib", done.stderr)

    def test_compare_says_which_command_draws_when_matplotlib_is_missing(self):
        folder = self.path("plots")
        python = self.write("python3", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        os.chmod(python, 0o755)
        done = subprocess.run([binary(), "compare", "random-dag:tasks=20,width=4", *map(str, QUICK), "--plots", folder], capture_output=True,
                              text=True, timeout=120, env={**os.environ, "PATH": f"{self.folder.name}:/usr/bin:/bin", "SLIPSTREAM_PLOT_AGAIN": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"tools/plot {folder}/compare.json --out {folder}", done.stderr)
        self.assertTrue(os.path.exists(f"{folder}/compare.json"))


def has_matplotlib(python):
    return os.path.exists(python) and subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if not has_matplotlib(sys.executable) and not has_matplotlib("/usr/bin/python3"):
        print("SKIPPED: matplotlib is missing (Debian, Ubuntu: apt-get install python3-matplotlib), so no figure was drawn")
        sys.exit(SKIPPED)
    cli_harness.main()
