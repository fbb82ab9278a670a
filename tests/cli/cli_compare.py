"""slipstream compare on the host device: tables, JSON, bounds and costs, seeds, sweeps, bad subjects."""
import os

import cli_harness
from cli_harness import CliTest, TASKS

SMALL = "random-dag:tasks=60,width=4"
QUICK = ("--device", "host", "--repeat", 2)
ENGINES = ["serial", "slipstream", "slipstream-hostdep"]


class Compare(CliTest):
    def check_subject(self, subject, tasks, repeats):
        self.assertEqual(subject["tasks"], tasks)
        self.assertEqual([run["engine"] for run in subject["runs"]], ENGINES)
        self.assertEqual([f["engine"] for f in subject["figures"]], ENGINES)
        for run in subject["runs"]:
            self.assertIs(run["verified"], True, run)
            self.assertEqual(run["repeats"], repeats)
            makespan = run["makespan_us"]
            self.assertGreater(makespan["p10"], 0)
            self.assertTrue(makespan["p10"] <= makespan["median"] <= makespan["p90"] <= makespan["p99"], makespan)
            self.assertGreater(run["cpu_us"]["median"], 0)
            self.assertLessEqual(run["submitter_cpu_us"]["median"], run["cpu_us"]["median"] * 1.01)
            self.assertEqual(run["scheduling_sms"], 0)  # the host device has none
        bounds = subject["bounds"]
        self.assertGreater(bounds["critical_path_us"], 0)
        self.assertGreater(bounds["work_us"], 0)
        self.assertTrue(1 <= bounds["critical_path_tasks"] <= tasks)
        self.assertGreaterEqual(bounds["workers"], 1)
        self.assertEqual(bounds["lowest_us"], max(bounds["critical_path_us"], bounds["work_us"]))
        for figure, run in zip(subject["figures"], subject["runs"]):
            self.assertAlmostEqual(figure["of_the_bound"], bounds["lowest_us"] / run["makespan_us"]["median"], delta=0.01 * figure["of_the_bound"] + 1e-3)
            self.assertAlmostEqual(figure["cpu_us_per_task"], run["cpu_us"]["median"] / tasks, places=2)
            self.assertIsNone(figure["over_best_alternative"])  # the host device has no alternative
        self.assertEqual(subject["figures"][0]["over_serial"], 1)

    def test_several_subjects_in_one_command(self):
        kineto, et = self.pair()
        result, done = self.json_of("compare", SMALL, kineto, f"{kineto}+{et}", *QUICK)
        workload, found, named = result["subjects"]
        self.check_subject(workload, 60, 2)
        self.assertEqual(workload["workload"]["name"], "random-dag")
        self.assertEqual(workload["workload"]["parameters"]["width"], "4")
        for trace in (found, named):
            self.check_subject(trace, TASKS, 2)
            self.assertEqual(trace["trace"], {"kineto": kineto, "et": et})
            self.assertTrue(any("host device" in note for note in trace["notes"]))
        self.assertEqual(result["sweeps"], [])
        self.assertIn("compare", result["environment"]["command"])
        for text in ("critical path", "over serial", "over best alternative", "of the bound", "CPU us, all threads", "bus bytes to GPU",
                     "SMs that schedule", "NOT GPU times"):
            self.assertIn(text, done.stderr)

    def test_every_seed_makes_the_workload_anew_and_a_trace_runs_once(self):
        kineto, _ = self.pair()
        result, _ = self.json_of("compare", SMALL, kineto, *QUICK, "--seeds", "1,2,3")
        self.assertEqual([s["seed"] for s in result["subjects"]], [1, 2, 3, 1])
        titles = [s["title"] for s in result["subjects"]]
        self.assertEqual(len(set(titles)), 4)
        for subject in result["subjects"]:
            self.assertTrue(all(run["verified"] for run in subject["runs"]))

    def test_engines_and_one_seed_can_be_chosen(self):
        result, _ = self.json_of("compare", SMALL, *QUICK, "--seed", 7, "--engine", "slipstream")
        self.assertEqual(result["subjects"][0]["seed"], 7)
        self.assertEqual([run["engine"] for run in result["subjects"][0]["runs"]], ["slipstream"])
        self.assertIsNone(result["subjects"][0]["figures"][0]["over_serial"])

    def test_a_wrong_result_fails_the_command(self):
        result, _ = self.json_of("compare", SMALL.replace("60", "300") + ",break=RAW", "--device", "host", "--repeat", 10, "--engine", "slipstream", code=1)
        self.assertIs(result["subjects"][0]["runs"][0]["verified"], False)

    def test_the_demo_is_found_beside_the_program(self):
        result, _ = self.json_of("compare", "demo", "--device", "host", "--repeat", 1, "--engine", "serial")
        self.assertTrue(result["subjects"][0]["trace"]["kineto"].endswith("traces/dlrm_h200.kineto.json.gz"))

    def test_the_suite_runs_what_the_results_page_shows(self):
        result, _ = self.json_of("compare", "--suite", "--device", "host", "--repeat", 1, "--engine", "serial")
        self.assertGreaterEqual(len(result["subjects"]), 3)
        for subject in result["subjects"]:
            self.assertIs(subject["runs"][0]["verified"], True, subject["title"])


class Sweep(CliTest):
    def test_a_sweep_over_values_of_ones_own(self):
        result, done = self.json_of("compare", "--sweep", "length=1,20,400", *QUICK, "--tasks", 40)
        self.assertEqual(result["subjects"], [])
        sweep, = result["sweeps"]
        self.assertEqual((sweep["axis"], sweep["measured_once"]), ("length", []))
        self.assertEqual([p["value"] for p in sweep["points"]], [1, 20, 400])
        for point in sweep["points"]:
            self.assertEqual(point["tasks"], 40)
            self.assertEqual([run["engine"] for run in point["runs"]], ENGINES)
            self.assertTrue(all(run["verified"] for run in point["runs"]))
            self.assertGreater(point["bounds"]["lowest_us"], 0)
        self.assertEqual([p["workload"]["parameters"]["work_us"] for p in sweep["points"]], ["1", "20", "400"])
        self.assertEqual([c["engine"] for c in sweep["curves"]], ENGINES)
        for curve in sweep["curves"]:
            self.assertEqual(len(curve["us_per_task"]), 3)
            self.assertEqual(len(curve["of_the_bound"]), 3)
            for crossing in curve["crossovers"]:
                self.assertTrue(1 <= crossing["at"] <= 400)
        self.assertIn("against serial: slipstream is", done.stderr)
        self.assertIn("keeps 50 % of the bound", done.stderr)

    def test_what_was_measured_is_kept_when_something_later_is_refused(self):
        result, done = self.json_of("compare", SMALL, *QUICK, "--sweep", "length=1,1000000000", code=2)
        sweep = result["sweeps"][0]
        self.assertEqual([point["value"] for point in sweep["points"]], [1])
        self.assertEqual({len(curve["us_per_task"]) for curve in sweep["curves"]}, {1})
        self.assertIn("1000000000", result["ended_by"])
        self.assertIn(result["ended_by"], done.stderr)
        result, done = self.json_of("compare", SMALL, "qr:tile=33", SMALL, *QUICK, code=2)
        self.assertEqual(len(result["subjects"]), 1)
        self.assertIn("tile", result["ended_by"])
        self.assertIn(result["ended_by"], done.stderr)

    def test_only_engines_with_a_window_run_again_when_it_changes(self):
        result, _ = self.json_of("compare", "--sweep", "window=16,64", *QUICK, "--tasks", 40)
        sweep, = result["sweeps"]
        self.assertEqual(sweep["measured_once"], ["serial"])
        self.assertEqual([p["window"] for p in sweep["points"]], [16, 64])
        first, second = ({run["engine"]: run for run in p["runs"]} for p in sweep["points"])
        self.assertEqual(list(first), ENGINES)
        self.assertEqual(first["serial"], second["serial"])
        self.assertNotEqual(first["slipstream"]["makespan_us"], second["slipstream"]["makespan_us"])

    def test_a_workload_of_ones_own_several_axes_and_seeds(self):
        result, _ = self.json_of("compare", SMALL, "--sweep", "width=1,8", "--sweep", "fan-in=0,3", *QUICK, "--seeds", "1,2",
                                 "--engine", "slipstream")
        self.assertEqual([s["axis"] for s in result["sweeps"]], ["width", "width", "fan-in", "fan-in"])
        self.assertEqual(len({(s["title"], s["axis"]) for s in result["sweeps"]}), 4)
        for sweep in result["sweeps"]:
            for point in sweep["points"]:
                self.assertEqual(point["tasks"], 60)  # given, so it stays


class BadUsage(CliTest):
    def test_what_is_no_subject_is_refused_with_what_would_do(self):
        self.refused("compare", names=["compare", "--suite", "--sweep"])
        self.refused("compare", "no-such-thing", names=["no-such-thing", "random-dag", ".kineto.json"])
        self.refused("compare", "random-dag:wide=3", names=["wide", "width"])
        self.refused("compare", "random-dag:width", names=["width", "NAME=VALUE"])
        self.refused("compare", self.path("absent.kineto.json.gz"), names=["absent.kineto.json.gz"])
        kineto, et = self.pair()
        self.refused("compare", f"{kineto}+nofile", names=[": nofile: no such file"])
        self.refused("compare", f"+{et}", names=["a file has no name", "KINETO+ET"])
        self.refused("compare", "random-dag:width=wide", "--device", "host", names=["width"])

    def test_a_kineto_file_without_its_execution_trace_is_refused(self):
        kineto, et = self.pair()
        os.remove(et)
        self.refused("compare", kineto, names=["run.et.json", "slipstream replay"])

    def test_bad_seeds_sweeps_engines_and_folders(self):
        self.refused("compare", SMALL, "--seeds", "1,2,1", names=["--seeds 1,2,1", "1 is given twice"])
        self.refused("compare", SMALL + ",width=5", names=["width is given twice"])
        self.refused("compare", SMALL, "--tasks", 100, names=["--tasks", "--sweep"])
        for seeds in ("1,", "x", "-1", "1;2"):
            self.refused("compare", SMALL, "--seeds", seeds, names=["--seeds"])
        for sweep in ("depth", "length=", "length=5,1", "window=8"):
            self.refused("compare", "--sweep", sweep, names=["--sweep", sweep])
        kineto, _ = self.pair()
        self.refused("compare", kineto, "--sweep", "length", names=["sweep", "workload"])
        self.refused("compare", SMALL, "--device", "host", "--engine", "warp-drive", names=["warp-drive", "serial"])
        self.refused("compare", SMALL, "--device", "host", "--plots", "/proc/no/such", names=["--plots"])
        self.refused("compare", SMALL, "--device", "host", "--json", self.path("no/such/folder.json"), names=["--json"])


if __name__ == "__main__":
    cli_harness.main()
