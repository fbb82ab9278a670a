"""slipstream replay: the analysis, the schema of the JSON, verification, and that a broken edge is seen."""
import json
import os

import cli_harness
from cli_harness import CliTest, EDGES, TASKS, call, et_json, kernel, kineto_json


class Replay(CliTest):
    def check_run(self, run, repeats):
        self.assertIsInstance(run["engine"], str)
        self.assertIsInstance(run["device"], str)
        self.assertEqual(run["repeats"], repeats)
        makespan = run["makespan_us"]
        self.assertGreater(makespan["p10"], 0)
        self.assertLessEqual(makespan["p10"], makespan["median"])
        self.assertLessEqual(makespan["median"], makespan["p90"])

    def test_a_pair_verifies_on_every_engine_of_the_host(self):
        kineto, et = self.pair()
        result, done = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 3)
        trace = result["trace"]
        self.assertEqual(trace["tasks"], TASKS)
        self.assertEqual(trace["edges"], EDGES)
        self.assertEqual((trace["contradicted"], trace["unmatched"], trace["dropped"]), (0, 0, 0))
        self.assertAlmostEqual(trace["work_us"], 24)
        self.assertGreater(trace["critical_path_us"], 0)
        self.assertLessEqual(trace["critical_path_us"], trace["work_us"])
        self.assertEqual([run["engine"] for run in result["runs"]], ["serial", "slipstream", "slipstream-hostdep"])
        for run in result["runs"]:
            self.check_run(run, 3)
            self.assertEqual(run["device"], "host")
            self.assertIs(run["verified"], True)
        environment = result["environment"]
        for key in ("gpu", "driver", "cuda_runtime", "commit", "command"):
            self.assertIsInstance(environment[key], str)
        self.assertTrue(environment["commit"])
        self.assertIn("replay", environment["command"])
        self.assertEqual((environment["window"], environment["ring"], environment["seed"]), (256, 1024, 1))
        self.assertIn("times are NOT GPU times", done.stderr)

    def test_analyze_runs_nothing(self):
        kineto, et = self.pair()
        result, _ = self.json_of("replay", kineto, "--et", et, "--analyze")
        self.assertEqual(result["trace"]["edges"], EDGES)
        self.assertEqual(result["runs"], [])

    def test_a_kineto_file_alone_is_stream_order_and_says_so(self):
        kineto, _ = self.pair()
        result, done = self.json_of("replay", kineto, "--device", "host", "--repeat", 2)
        self.assertEqual(result["trace"]["dependencies"], "stream_order")
        self.assertEqual(result["trace"]["edges"]["ORDER"], TASKS - 1)
        self.assertIn("stream order", done.stderr)
        self.assertTrue(all(run["verified"] for run in result["runs"]))

    def test_an_execution_trace_alone(self):
        _, et = self.pair()
        result, _ = self.json_of("replay", "--et", et, "--device", "host", "--repeat", 2)
        self.assertEqual(result["trace"]["edges"], EDGES)
        self.assertFalse(result["trace"]["durations_known"])
        self.assertTrue(all(run["verified"] for run in result["runs"]))

    def test_small_windows_and_rings(self):
        kineto, et = self.pair()
        for window, ring in ((16, 4), (16, 1024), (1024, 4)):
            result, _ = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 2, "--window", window, "--ring", ring)
            self.assertTrue(all(run["verified"] for run in result["runs"]))

    def test_engines_can_be_chosen(self):
        kineto, et = self.pair()
        for wanted, engines in (("serial", ["serial"]), ("slipstream,serial", ["serial", "slipstream"]), ("slipstream", ["slipstream"])):
            result, _ = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 1, "--engine", wanted)
            self.assertEqual([run["engine"] for run in result["runs"]], engines)

    def test_a_paced_replay_takes_as_long_as_the_recorded_host(self):
        kineto, et = self.pair()
        result, done = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 2, "--mode", "paced")
        self.assertEqual(result["mode"], "paced")
        self.assertGreater(result["last_arrival_us"], 0)
        for run in result["runs"]:
            self.assertIs(run["verified"], True)
            self.assertGreaterEqual(run["makespan_us"]["p10"], result["last_arrival_us"])
            self.assertGreaterEqual(run["after_last_arrival_us"]["p10"], 0)
        self.assertIn("as recorded", done.stderr)

    def test_a_preloaded_replay_leaves_out_who_cannot(self):
        kineto, et = self.pair()
        result, done = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 2, "--mode", "preloaded")
        self.assertEqual([run["engine"] for run in result["runs"]], ["slipstream"])
        self.assertIs(result["runs"][0]["verified"], True)
        self.assertIn("serial takes no preloaded tasks", done.stderr)
        self.refused("replay", kineto, "--device", "host", "--mode", "preloaded", "--engine", "serial", names=("serial", "preloaded"))
        self.refused("replay", kineto, "--mode", "soon", names=("--mode soon", "paced"))
        self.refused("replay", "--et", et, "--device", "host", "--mode", "paced", names=("paced", "Kineto"))

    def test_more_tasks_than_can_be_preloaded_are_refused(self):
        events = []
        for i in range(65537):
            events += [call(i, i, i), kernel("k", 10 + i, 0.5, i, i, [1, 1, 1])]
        kineto = self.write("many.kineto.json", {"schemaVersion": 1, "traceEvents": events})
        done = self.run_cli("replay", kineto, "--device", "host", "--repeat", 1, "--mode", "preloaded", code=2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for name in ("65537 tasks", "65536", "--mode back-to-back"):
            self.assertIn(name, done.stderr)

    def test_the_tables_go_to_stdout_unless_the_json_does(self):
        kineto, et = self.pair()
        done = self.run_cli("replay", kineto, "--et", et, "--device", "host", "--repeat", 1)
        self.assertIn("speed-up over serial", done.stdout)
        self.assertEqual(done.stderr, "")
        path = self.path("result.json")
        done = self.run_cli("replay", kineto, "--et", et, "--device", "host", "--repeat", 1, "--json", path)
        self.assertIn("speed-up over serial", done.stdout)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["trace"]["tasks"], TASKS)

    def commit_result(self, kineto, et, mode, name, **environment):
        """Writes what a replay of this pair says, as of an H200, to results/NAME beside it. Returns the result's path."""
        os.makedirs(self.path("results"), exist_ok=True)
        path = self.path(f"results/{name}")
        self.run_cli("replay", kineto, "--et", et, "--device", "host", "--repeat", 1, "--mode", mode, "--json", path)
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        result["environment"].update(gpu="NVIDIA H200", **environment)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file)
        return path

    def shown(self, *arguments):
        return self.run_cli(*arguments, "--device", "host", "--repeat", 1).stdout

    def test_the_committed_result_of_the_same_trace_is_shown(self):
        kineto, et = self.pair()
        path = self.commit_result(kineto, et, "back-to-back", "run.h200.json", driver="580.00.01", commit="0123456789ab")
        for arguments in (("replay", kineto, "--et", et), ("compare", kineto)):
            for text in ("Committed result of the same trace, back-to-back, on NVIDIA H200", "580.00.01", "0123456789ab"):
                self.assertIn(text, self.shown(*arguments))
        with open(path, "w", encoding="utf-8") as file:
            file.write("{")
        self.assertNotIn("Committed", self.shown("replay", kineto, "--et", et))  # ignored, with a warning

    def test_a_committed_result_is_of_the_same_mode(self):
        kineto, et = self.pair()
        self.commit_result(kineto, et, "back-to-back", "run.h200.json", commit="of-back-to-back")
        for mode in ("paced", "preloaded"):
            self.assertNotIn("Committed", self.shown("replay", kineto, "--et", et, "--mode", mode))
            self.commit_result(kineto, et, "back-to-back", f"run.{mode}.h200.json")  # not what its name says
            self.assertNotIn("Committed", self.shown("replay", kineto, "--et", et, "--mode", mode))
            self.commit_result(kineto, et, mode, f"run.{mode}.h200.json", commit=f"of-{mode}")
        for mode in ("back-to-back", "paced", "preloaded"):
            out = self.shown("replay", kineto, "--et", et, "--mode", mode)
            self.assertIn(f"Committed result of the same trace, {mode}, on NVIDIA H200", out)
            self.assertIn(f"of-{mode}", out)
            self.assertEqual(out.count("Committed"), 1)

    def test_a_committed_result_is_of_the_same_two_files(self):
        kineto, et = self.pair()
        self.commit_result(kineto, et, "back-to-back", "run.h200.json")
        self.assertNotIn("Committed", self.shown("replay", kineto))
        self.assertNotIn("Committed", self.shown("replay", "--et", et))
        self.assertNotIn("Committed", self.shown("replay", kineto, "--et", self.write("other.et.json", et_json())))
        fewer = kineto_json()
        fewer["traceEvents"].pop()
        self.write("run.kineto.json.gz", fewer)
        self.assertNotIn("Committed", self.shown("replay", kineto, "--et", et))

    def test_an_edge_left_out_does_not_verify(self):
        kineto, et = self.pair()
        for kind in ("RAW", "WAR", "WAW"):
            result, _ = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 10, "--engine", "slipstream",
                                     "--break", kind, code=1)
            self.assertIs(result["runs"][0]["verified"], False, kind)


if __name__ == "__main__":
    cli_harness.main()
