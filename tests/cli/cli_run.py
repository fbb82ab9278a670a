"""slipstream run and slipstream devices."""
import cli_harness
from cli_harness import CliTest


class Run(CliTest):
    def test_the_list_names_every_workload_with_its_parameters(self):
        result, done = self.json_of("run", "--list")
        by_name = {workload["name"]: workload for workload in result["workloads"]}
        self.assertIn("random-dag", by_name)
        self.assertIn("width", by_name["random-dag"]["parameters"])
        self.assertIn("random-dag", done.stderr)

    def test_random_dag_verifies_on_every_engine_of_the_host(self):
        for seed in (1, 2):
            result, _ = self.json_of("run", "random-dag", "--device", "host", "--repeat", 2, "--seed", seed)
            self.assertEqual([run["engine"] for run in result["runs"]], ["serial", "slipstream", "slipstream-hostdep"])
            for run in result["runs"]:
                self.assertIs(run["verified"], True)
                self.assertEqual(run["repeats"], 2)

    def test_random_dag_verifies_with_small_windows_and_rings(self):
        for window, ring in ((16, 4), (64, 64)):
            result, _ = self.json_of("run", "random-dag", "--device", "host", "--repeat", 1, "--window", window, "--ring", ring)
            self.assertTrue(all(run["verified"] for run in result["runs"]))

    def test_an_edge_left_out_does_not_verify(self):
        for kind in ("RAW", "WAR", "WAW"):
            # The two tasks need not meet in one run; that they never do in ten is another matter.
            result, _ = self.json_of("run", "random-dag", "--device", "host", "--repeat", 10, "--engine", "slipstream,slipstream-hostdep",
                                     "--break", kind, code=1)
            self.assertEqual([run["verified"] for run in result["runs"]], [False, False], kind)

    def test_the_other_workloads_verify_on_every_engine_of_the_host(self):
        small = {"cholesky": ("tiles=5", "precision=fp64"), "qr": ("tiles=5", "handles=0"), "fork-join": ("depth=3",), "pipeline": ("items=20",),
                 "task-bench": ("pattern=spread", "width=16", "steps=10")}
        listed = {workload["name"] for workload in self.json_of("run", "--list")[0]["workloads"]}
        self.assertEqual(listed, set(small) | {"random-dag"})
        for name, parameters in small.items():
            result, _ = self.json_of("run", name, *parameters, "--device", "host", "--repeat", 1)
            self.assertEqual([run["verified"] for run in result["runs"]], [True] * 3, name)

    def test_workloads_verify_on_an_engine_of_several_parts(self):
        # Stencils and tiles cross from part to part; a diamond of registered cells does, too.
        for name, parameters, crosses in (("task-bench", ("width=16", "steps=20"), True), ("task-bench", ("width=16", "steps=20", "pattern=no_comm"), False),
                                          ("task-bench", ("width=16", "steps=5", "handles=0"), False), ("cholesky", ("tiles=6", "precision=fp64"), True),
                                          ("qr", ("tiles=4",), True), ("random-dag", ("tasks=300",), None), ("fork-join", ("depth=4",), None)):
            for parts in (2, 3):
                result, done = self.json_of("run", name, *parameters, "--device", "host", "--repeat", 2, "--parts", parts)
                self.assertEqual(result["environment"]["parts"], parts)
                self.assertIn(f"ring 1024 of each of {parts} parts", done.stderr)
                for run in result["runs"]:
                    self.assertIs(run["verified"], True, (name, parts, run))
                    self.assertEqual("crossing_tasks" in run, run["engine"] == "slipstream")  # the others have one part, or none
                crossing = result["runs"][1]["crossing_tasks"]
                if crosses is not None:
                    self.assertEqual(crossing > 0, crosses, (name, parts, crossing))

    def test_a_stencil_is_placed_by_point(self):
        # Neighbouring points lie in one part, with both of their buffers: in each row but the first, the two tasks beside the border cross.
        result, _ = self.json_of("run", "task-bench", "width=16", "steps=20", "--device", "host", "--repeat", 1, "--engine", "slipstream", "--parts", 2)
        self.assertEqual(result["runs"][0]["crossing_tasks"], 2 * 19)

    def test_a_known_critical_path_is_printed(self):
        result, done = self.json_of("run", "fork-join", "depth=5", "--device", "host", "--repeat", 1, "--engine", "serial")
        self.assertEqual(result["workload"]["critical_path"], {"tasks": 15, "work_us": 0.7})
        self.assertIn("critical path 15 tasks", done.stderr)
        result, _ = self.json_of("run", "random-dag", "--device", "host", "--repeat", 1, "--engine", "serial")
        self.assertNotIn("critical_path", result["workload"])

    def test_what_an_engine_tells_of_itself_is_in_its_run(self):
        result, done = self.json_of("run", "random-dag", "--device", "host", "--repeat", 2, "--engine", "slipstream-hostdep")
        self.assertGreater(result["runs"][0]["upstream_ids"], 0)
        self.assertIn("upstream_ids", done.stderr)
        for name in ("slipstream", "slipstream-hostdep"):
            result, done = self.json_of("run", "random-dag", "tasks=100", "--device", "host", "--repeat", 2, "--engine", name)
            self.assertGreaterEqual(result["runs"][0]["bus_bytes_to_gpu"], 2 * 100 * 64)
            self.assertGreaterEqual(result["runs"][0]["bus_bytes_to_host"], 2 * 100 * 16)
            self.assertIn("bus_bytes_to_gpu", done.stderr)


class Devices(CliTest):
    def test_the_host_is_always_there(self):
        result, done = self.json_of("devices")
        self.assertEqual(result["devices"][0]["device"], "host")
        self.assertGreaterEqual(result["devices"][0]["cores"], 1)
        self.assertIn("host", done.stderr)

    def test_flags_show_in_help_as_they_are_written_and_turn_something_off(self):
        for command in ("run", "replay", "compare", "bench"):
            self.assertNotIn("{", self.run_cli(command, "--help").stdout)
        flags = {"staging": "--no-staging", "chaining": "--no-chaining", "bypass": "--no-bypass", "broadcast": "--no-broadcast"}
        for given in ((), ("staging",), ("chaining", "bypass"), ("broadcast",)):
            result, _ = self.json_of("run", "random-dag", "tasks=20", "--device", "host", "--repeat", 1, *(flags[name] for name in given))
            for name in flags:
                self.assertIs(result["environment"][name], name not in given, (name, given))

    def test_what_has_no_effect_is_refused(self):
        for arguments in (("--device", "foo"), ("--device", "host"), ("--engine", "nope"), ("--window", 16), ("--analyze",), ("host",)):
            self.refused("devices", *arguments, names=[arguments[0], "slipstream devices --help"])
        listed = self.run_cli("devices", "--help").stdout
        self.assertIn("--json", listed)
        self.assertNotIn("--device", listed)

    def test_help_and_version_are_good(self):
        self.assertIn("replay", self.run_cli("--help").stdout)
        self.assertIn("--engine", self.run_cli("replay", "--help").stdout)
        self.assertIn("slipstream", self.run_cli("--version").stdout)


if __name__ == "__main__":
    cli_harness.main()
