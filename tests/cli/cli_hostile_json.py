"""Reports that somebody changed: tools/plotting refuses them in one line, or draws what it lets through."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import cli_harness

TOOLS = Path(__file__).resolve().parents[2] / "tools"
NO_MATPLOTLIB = 3

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
from plotting import comparison_json  # noqa: E402

SEED = int(os.environ.get("SLIPSTREAM_SEED", "1"))
MUTANTS = int(os.environ.get("SLIPSTREAM_MUTANTS", "4000"))
DRAWN = 6  # each takes a good part of a second

RUN = {"engine": "serial", "makespan_us": {"median": 10, "p10": 9, "p90": 11, "p99": 12}, "verified": True, "repeats": 3,
       "cpu_us": {"median": 5}, "bus_bytes_to_gpu": 640, "scheduling_sms": 1}
BOUNDS = {"critical_path_us": 3, "critical_path_tasks": 2, "work_us": 8, "workers": 4, "lowest_us": 3}
ENVIRONMENT = {"cpu": "a cpu", "gpu": "", "driver": "", "cuda_runtime": "", "commit": "0123456789abcdef", "date": "2026-01-01", "command": "compare",
               "window": 256, "ring": 1024}
SEEDS = [
    {"command": "compare", "environment": ENVIRONMENT, "sweeps": [], "subjects": [
        {"title": f"subject {i}", "tasks": 10, "bounds": BOUNDS, "notes": ["a note"], "runs": [
            RUN, {**RUN, "engine": "slipstream", "scheduling_sms": 1.5}, {**RUN, "engine": "graph-replay", "build_and_replay_us": {"median": 30}}]}
        for i in range(2)]},
    {"command": "compare", "environment": ENVIRONMENT, "subjects": [], "sweeps": [
        {"title": "layered DAG", "axis": "length", "label": "task length, us", "measured_once": ["serial"],
         "points": [{"value": v, "tasks": 10, "bounds": BOUNDS} for v in (1, 10, 100)],
         "curves": [{"engine": e, "us_per_task": [3, None, 7], "slipstream_wins_first": True, "half_of_bound_from": 10, "nine_tenths_of_bound_from": None,
                     "crossovers": [{"at": 5, "slipstream_wins_above": False}]} for e in ("serial", "slipstream")]}]},
    {"command": "replay", "environment": ENVIRONMENT, "trace": {"kineto": "a/b.kineto.json", "et": "", "tasks": 4}, "runs": [RUN]},
    {"command": "run", "environment": ENVIRONMENT, "workload": {"name": "random-dag", "tasks": 4}, "runs": [RUN]},
]
VALUES = [None, True, 0, -1, 1, 0.5, 1e-300, 5e-324, 1e18, 1e308, 10**40, "", "x", "a" * 5000, "$\\frac{1}{", "\x00\x1b[31m", "\ud800", "../../etc",
          [], [[]], {}, [1, 2, 3], {"median": "1"}]
TOKENS = ["{", "}", "[", "]", ",", ":", '"', "NaN", "Infinity", "-Infinity", "1e999", "null", "\\u0000", "\\ud800", "9" * 400, "[" * 3000]


def fresh(value):
    """A copy that shares nothing, with itself neither."""
    return json.loads(json.dumps(value))


def places(value, found, parent=None, key=None):
    """All (container, key) of a JSON value."""
    if parent is not None:
        found.append((parent, key))
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for k, child in items:
        places(child, found, value, k)
    return found


def mutant(source):
    """Text of a seed with a few values, members or characters changed."""
    result = fresh(source.choice(SEEDS))
    for _ in range(source.randint(1, 3)):
        parent, key = source.choice(places(result, []))
        change = source.randrange(4)
        if change == 0:
            parent.pop(key)
        elif change == 1 and isinstance(parent, list):
            parent.append(fresh(parent[key]))
        else:
            parent[key] = source.choice(VALUES)
    text = json.dumps(result)
    if source.randrange(4) == 0:
        at = source.randrange(len(text))
        text = text[:at] + source.choice(TOKENS) + text[at + source.randrange(3):]
    return text


class Mutants(unittest.TestCase):
    def test_the_seeds_are_accepted(self):
        for seed in SEEDS:
            comparison_json.parse(json.dumps(seed))

    def test_a_mutant_is_refused_by_a_ValueError_or_accepted(self):
        source = random.Random(SEED)
        accepted, refused = [], 0
        for number in range(MUTANTS):
            text = mutant(source)
            try:
                accepted.append((comparison_json.parse(text), text))
            except ValueError as error:
                refused += 1
                self.assertEqual(len(str(error).splitlines()), 1, text)
            except Exception as error:  # noqa: BLE001 (that is the point)
                self.fail(f"mutant {number} of seed {SEED} raised {error!r}: {text}")
        self.assertGreater(len(accepted), MUTANTS // 20)
        self.assertGreater(refused, MUTANTS // 20)

    def test_what_is_accepted_is_drawn(self):
        source = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            drawn = 0
            while drawn < DRAWN:
                text = mutant(source)
                try:
                    comparison_json.parse(text)
                except ValueError:
                    continue
                file = Path(folder, "mutant.json")
                file.write_text(text, encoding="utf-8")
                done = subprocess.run([sys.executable, TOOLS / "plot", file, "--out", Path(folder, "out")], capture_output=True, text=True, timeout=120)
                if done.returncode == NO_MATPLOTLIB:
                    self.skipTest("matplotlib is missing (Debian, Ubuntu: apt-get install python3-matplotlib)")
                self.assertEqual(done.returncode, 0, f"seed {SEED}: {text}\n{done.stderr}")
                drawn += 1


class Bounds(unittest.TestCase):
    def refused(self, text, part):
        with self.assertRaises(ValueError) as caught:
            comparison_json.parse(text)
        self.assertIn(part, str(caught.exception))

    def changed(self, seed, change):
        result = fresh(SEEDS[seed])
        change(result)
        return json.dumps(result)

    def test_each_dimension_has_a_bound_and_a_place(self):
        self.refused("[" * 100000, "nested too deep")
        self.refused(self.changed(0, lambda r: r["subjects"][1]["runs"][2]["makespan_us"].update(median=1e19)),
                     "subjects[1].runs[2].makespan_us.median is no number from 0 to 1e+18")
        self.refused(self.changed(0, lambda r: r["subjects"][0]["runs"][0]["makespan_us"].update(p10=-1)), "p10 is no number")
        self.refused(self.changed(0, lambda r: r["subjects"][0].update(tasks=0)), "subjects[0].tasks is not at least 1")
        self.refused(self.changed(0, lambda r: r.update(subjects=r["subjects"] * 51)), "subjects is no list of at most 100")
        self.refused(self.changed(0, lambda r: r["subjects"][0].update(runs=[RUN] * 65)), "subjects[0].runs is no list of at most 64")
        self.refused(self.changed(1, lambda r: r["sweeps"][0]["curves"][0].update(us_per_task=[1])), "no value for each of 3 points")
        self.refused(self.changed(1, lambda r: r["sweeps"][0]["points"][1].update(value=1)), "points do not ascend")
        self.refused(json.dumps(SEEDS[2]).replace('"tasks": 4', '"tasks": NaN'), "NaN is no number")
        self.refused(json.dumps(SEEDS[2]).replace('"tasks": 4', '"tasks": 1e999'), "1e999 is no number")
        self.refused("[]", "the whole is no object")

    def test_text_is_cut_and_cannot_break_a_figure(self):
        result = fresh(SEEDS[0])
        result["subjects"][0]["title"] = "\x00\x1b[31m" + "t" * 5000
        title = comparison_json.parse(json.dumps(result)).subjects[0].title
        self.assertTrue(title.startswith("??[31mttt"))
        self.assertEqual(len(title), 1000)

    def test_a_file_that_is_none_or_large_is_refused_unread(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)  # reading it would wait for ever
            large = Path(folder, "large.json")
            with open(large, "wb") as file:
                file.truncate(comparison_json.FILE_BYTES_MAX + 1)
            for path, part in ((pipe, "no regular one"), (folder, "no regular one"), (large, "larger than")):
                with self.assertRaises(ValueError) as caught:
                    comparison_json.load(path)
                self.assertIn(str(path), str(caught.exception))
                self.assertIn(part, str(caught.exception))


if __name__ == "__main__":
    cli_harness.main()
