"""slipstream bench on the host device: every benchmark verifies, its JSON has its parts, bad usage is refused."""
import math
import os
import cli_harness
from cli_harness import CliTest

SMALL = ("--device", "host", "--tasks", 40, "--repeat", 2)
SMALL_IDLE = ("--device", "host", "--repeat", 2)  # idle has no tasks to count
BENCHMARKS = ("chain", "fan", "throughput", "echo", "blocks", "window", "parts", "bus", "bodies", "large", "idle", "growth", "submit")
PARTS_USUAL = 6  # as in bench/benchmarks.hpp: the parts of the engine in the rows of independent tasks and of METG


def is_number_or_none(value):
    return value is None or isinstance(value, (int, float))


class Bench(CliTest):
    def test_every_benchmark_verifies_and_says_where_it_ran(self):
        for name in BENCHMARKS:
            result, done = self.json_of("bench", name, *(SMALL_IDLE if name == "idle" else SMALL))
            self.assertEqual(result["command"], f"bench {name}")
            self.assertGreaterEqual(len(result["figures"]), 1)
            for figure in result["figures"]:
                self.assertIs(figure["verified"], True, figure)
                self.assertIn(figure["unit"], ("us", "ns", "M/s", "B", "%", "x"))
                for key in ("median", "p10", "p90"):
                    self.assertTrue(is_number_or_none(figure["value"][key]), figure)  # none: at these sizes times are noise
                self.assertGreaterEqual(figure["tasks"], 1)
                self.assertGreaterEqual(figure["repeats"], 1)
                self.assertEqual(figure["floors"], [])  # the host device has none
                self.assertEqual(figure["alternatives"], [])
            environment = result["environment"]
            self.assertEqual(environment["device"], "host")
            for key in ("cpu", "commit", "command", "window", "ring", "repeat"):
                self.assertIn(key, environment)
            self.assertIn("NOT GPU times", done.stderr)

    def test_a_chain_has_its_three_bodies_and_the_empty_one_is_labelled(self):
        result, _ = self.json_of("bench", "chain", *SMALL)
        names = [figure["name"] for figure in result["figures"]]
        self.assertEqual(names, ["chain, 4 KB, by handle", "chain, 4 KB, by handle, successor on another SM", "chain, 4 B, by handle",
                                 "chain, 0 B (no-op bodies), by handle", "chain, 4 KB, by range"])
        moved = result["figures"][1]
        self.assertGreaterEqual(moved["hops_looked_at"], 3990)  # of 3999: the log is whole
        self.assertLessEqual(moved["hops_that_stayed_on_their_sm"], moved["hops_looked_at"])
        self.assertIn("verifies nothing", result["figures"][3]["note"])

    def test_the_bus_carries_one_slot_or_two_and_a_record_for_each_task(self):
        result, done = self.json_of("bench", "bus", "--device", "host", "--tasks", 500, "--repeat", 3)
        for figure, slots in zip(result["figures"], (1, 2)):
            self.assertEqual(figure["unit"], "B")
            self.assertAlmostEqual(figure["ring_payload"], 64 * slots, delta=1)
            self.assertAlmostEqual(figure["recorder"], 16, delta=1)
            # The sum holds what was polled in vain too: on a busy host that is noise.
            self.assertTrue(is_number_or_none(figure["value"]["median"]))
            self.assertIn("ring_polls", figure["note"])
        self.assertIn("two slots", done.stderr)

    def test_bodies_run_alone_and_mixed(self):
        result, done = self.json_of("bench", "bodies", *SMALL)
        self.assertEqual([figure["name"] for figure in result["figures"]],
                         ["streaming copy, alone", "block reduction, alone", "tensor-core GEMM tile, alone", "register-heavy fp64, alone",
                          "all four at once, a round"])
        self.assertIn("2 blocks a task", done.stderr)

    def test_a_large_task_has_even_and_skewed_blocks(self):
        result, done = self.json_of("bench", "large", *SMALL)
        self.assertEqual([figure["name"] for figure in result["figures"]],
                         ["one large task, 4 B a block, even", "one large task, 4 B a block, skewed"])
        self.assertIn("2048 blocks a task", done.stderr)

    def test_an_idle_engine_is_held_against_an_absent_one(self):
        result, _ = self.json_of("bench", "idle", *SMALL_IDLE)
        figure = result["figures"][0]
        self.assertEqual((figure["unit"], figure["repeats"]), ("%", 2))
        self.assertGreater(figure["beside_idle_engine_us"], 0)
        self.assertGreater(figure["engine_away_us"], 0)
        self.assertIn("no SMs", figure["note"])

    def test_parts_are_those_of_one_engine_and_some_tasks_cross(self):
        def name(what, parts):
            return f"throughput, {what}, window 256" + (f", {parts} parts" if parts > 1 else "")
        result, done = self.json_of("bench", "parts", "--device", "host", "--tasks", 500, "--repeat", 1)
        handles, ranges = "handles, 2 in 1 out", "4 raw ranges"
        wanted = [(name(what, n), n) for what in (handles, ranges) for n in (1, 2, 4, 5, 6, 7)]
        wanted += [(name(handles, PARTS_USUAL) + f", {share} % of the tasks cross", PARTS_USUAL) for share in (1, 10)]
        self.assertEqual([(f["name"], f["control_blocks"]) for f in result["figures"]], wanted)
        for figure in result["figures"]:
            self.assertGreaterEqual(figure["workers"], figure["control_blocks"])
            self.assertEqual(figure["ring_slots"], 1024)
        self.assertEqual(result["environment"]["parts"], 1)

    def test_the_parts_are_chosen(self):
        for name in ("throughput", "window", "submit", "echo", "bus"):
            result, done = self.json_of("bench", name, *SMALL, "--parts", 3)
            self.assertEqual(result["environment"]["parts"], 3)
            self.assertIn("ring 1024 of each of 3 parts", done.stderr)
            if name == "submit":
                self.assertEqual([f["name"] for f in result["figures"]],
                                 ["submit, one slot, ring not full", "submit, a task that reads from another part, rings not full"])
                for figure in result["figures"]:  # how fast the submitting core was meanwhile
                    self.assertGreater(figure["core_additions_a_ns_p10"], 0)
                    self.assertLessEqual(figure["core_additions_a_ns_p10"], figure["core_additions_a_ns"])
                    self.assertLessEqual(figure["core_additions_a_ns"], figure["core_additions_a_ns_p90"])
            if name in ("throughput", "window"):
                self.assertEqual({f["control_blocks"] for f in result["figures"]}, {3})
                self.assertTrue(all(f["name"].endswith("3 parts") for f in result["figures"]))

    def test_growth_sweeps_runs_windows_and_accesses(self):
        result, _ = self.json_of("bench", "growth", "--device", "host", "--tasks", 1000, "--repeat", 2)
        names = [figure["name"] for figure in result["figures"]]
        for what, sizes in (("a run of {} tasks", (1, 10, 100, 1000)), ("a task of 4 ranges, window {}", (16, 128, 1024)),
                            ("a task of a chain, window {}", (16, 128, 1024)), ("a task of {} accesses", (1, 8, 64))):
            for size in sizes:
                self.assertIn("growth, " + what.format(size), names)
        summary = result["figures"][-1]
        self.assertEqual((summary["unit"], summary["tasks"], summary["longest_run_tasks"]), ("x", 1000, 1000))
        self.assertGreater(summary["value"]["median"], 0)  # a task of a thousand, held against one of ten
        self.assertGreater(summary["worst_doubling_of_tasks"], 0)
        for key in ("worst_doubling_of_windows", "worst_doubling_of_chains", "worst_doubling_of_accesses"):
            self.assertTrue(is_number_or_none(summary[key]))  # slopes of so few tasks may be noise

    def test_a_lost_task_does_not_verify(self):
        for name in BENCHMARKS:
            result, _ = self.json_of("bench", name, *(SMALL_IDLE if name == "idle" else SMALL), "--lose-a-task", code=1)
            for figure in result["figures"]:
                if "no-op" not in figure["name"]:
                    self.assertIs(figure["verified"], False, figure)

    def test_a_lost_crossing_task_does_not_verify_after_many_laps_either(self):
        result, _ = self.json_of("bench", "submit", "--device", "host", "--parts", 2, "--tasks", 5000, "--repeat", 2, "--lose-a-task", code=1)
        self.assertEqual([figure["verified"] for figure in result["figures"]], [False, False])

    def test_small_windows_and_rings_verify(self):
        for window, ring in ((16, 4), (64, 16)):
            for name in ("chain", "fan", "throughput", "submit"):
                self.run_cli("bench", name, *SMALL, "--window", window, "--ring", ring)

    def test_the_width_of_a_fan_is_chosen(self):
        result, _ = self.json_of("bench", "fan", *SMALL, "--width", 3)
        self.assertEqual([f["name"] for f in result["figures"]], ["fan of 3, 4 KB, a round, parts in one buffer"])
        result, _ = self.json_of("bench", "fan", *SMALL, "--width", 2)
        self.assertEqual([f["name"] for f in result["figures"]], ["fan of 2, 4 KB, a round, by handle", "fan of 2, 4 KB, a round", "fan of 2, 4 KB, a round, parts in one buffer"])

    def test_sizes_follow_from_the_time_given(self):
        result, _ = self.json_of("bench", "fan", "--device", "host", "--repeat", 2, "--seconds", 0.1)
        self.assertIs(result["figures"][0]["verified"], True)
        self.assertGreaterEqual(result["figures"][0]["tasks"], 1)

    def test_a_file_takes_the_json_and_the_table_stays_on_stdout(self):
        done = self.run_cli("bench", "echo", *SMALL, "--json", self.path("echo.json"))
        self.assertIn("submit to seen complete", done.stdout)
        self.assertTrue(os.path.getsize(self.path("echo.json")) > 0)


class Metg(CliTest):
    TINY = ("bench", "metg", "--device", "host", "--tasks", 32, "--repeat", 2, "--seconds", 0.1)

    def check_interpolation(self, value, points, level):
        """METG as the README says it, of the points of the JSON, whose efficiencies are rounded to four digits."""
        if any(abs(point["efficiency"] - level) < 2e-4 for point in points):
            return
        first = len(points)
        while first > 0 and points[first - 1]["efficiency"] > level:
            first -= 1
        if first == len(points):
            self.assertEqual(value, {"outcome": "not reached"})
        elif first == 0:
            self.assertEqual(value, {"outcome": "at most", "us": points[0]["granularity_us"]})
        else:
            self.assertEqual(value["outcome"], "reached")
            low, high = points[first - 1], points[first]
            share = (level - low["efficiency"]) / (high["efficiency"] - low["efficiency"])
            us = math.exp(math.log(low["granularity_us"]) * (1 - share) + math.log(high["granularity_us"]) * share)
            ends = sorted((low["granularity_us"], high["granularity_us"]))
            self.assertTrue(0.999 * ends[0] <= value["us"] <= 1.001 * ends[1], value)
            if high["efficiency"] - low["efficiency"] > 0.05:
                self.assertAlmostEqual(value["us"] / us, 1, delta=0.01)

    def test_curves_verify_and_metg_lies_between_its_points(self):
        result, done = self.json_of(*self.TINY, "--engines", "all")
        metg = result["metg"]
        self.assertIs(metg["peak"]["verified"], True)
        graph, = metg["graphs"]
        self.assertEqual((graph["pattern"], graph["width"], graph["steps"], graph["buffers"]), ("stencil_1d", 16, 2, 2))
        self.assertEqual((graph["tasks"], graph["inputs"]), (32, 46))
        self.assertEqual([curve["engine"] for curve in graph["curves"]], ["serial", "slipstream", "slipstream-hostdep"])
        highest = 0
        for curve in graph["curves"]:
            self.assertIs(curve["verified"], True, curve)
            self.assertGreaterEqual(len(curve["points"]), 2)  # on a busy machine the peak is low, and soon reached
            lengths = [point["iterations"] for point in curve["points"]]
            self.assertEqual(lengths, sorted(set(lengths)))
            for point in curve["points"]:
                self.assertIs(point["verified"], True)
                wall = point["wall_us"]
                self.assertLessEqual(wall["p10"], wall["median"])
                self.assertLessEqual(wall["median"], wall["p90"])
                rate = 32 * point["iterations"] / wall["median"]
                self.assertAlmostEqual(point["efficiency"], rate / metg["peak"]["iterations_per_us"], delta=1e-3)
                self.assertAlmostEqual(point["granularity_us"], wall["median"] * metg["places"] / 32, delta=1e-3)
                highest = max(highest, rate)
            self.check_interpolation(curve["metg_50"], curve["points"], 0.5)
            self.check_interpolation(curve["metg_95"], curve["points"], 0.95)
        self.assertGreaterEqual(metg["peak"]["iterations_per_us"] * 1.001, highest)  # nobody beats the peak
        self.assertIn("METG(95 %) us", done.stderr)
        self.assertIn("NOT GPU times", done.stderr)

    def test_an_engine_of_several_parts_verifies(self):
        result, done = self.json_of(*self.TINY, "--engines", "slipstream", "--parts", 2)
        self.assertIs(result["metg"]["graphs"][0]["curves"][0]["verified"], True, done.stderr)
        self.assertEqual(result["environment"]["parts"], 2)

    def test_every_pattern_verifies_and_the_buffers_are_chosen(self):
        result, _ = self.json_of(*self.TINY, "--pattern", "all", "--buffers", 3, "--engines", "slipstream")
        graphs = result["metg"]["graphs"]
        self.assertEqual(len(graphs), 11)
        for graph in graphs:
            self.assertEqual(graph["buffers"], 3)
            self.assertIs(graph["curves"][0]["verified"], True, graph["pattern"])

    def test_a_lost_task_does_not_verify(self):
        result, done = self.json_of(*self.TINY, "--lose-a-task", code=1)
        curve = result["metg"]["graphs"][0]["curves"][0]
        self.assertIs(curve["verified"], False)
        self.assertIs(curve["points"][-1]["verified"], False)
        self.assertEqual(curve["metg_50"], {"outcome": "not reached"})
        self.assertIn("wrong digest", done.stderr)

    def test_unknown_patterns_and_engines_and_a_single_buffer_are_refused(self):
        self.refused(*self.TINY, "--pattern", "stencil_2d", names=("stencil_2d", "stencil_1d", "random_nearest", "all"))
        self.refused(*self.TINY, "--engines", "graph-replay", names=("graph-replay", "slipstream"))
        self.refused(*self.TINY, "--buffers", 1, names=("--buffers 1", "2 or more"))


class Targets(CliTest):
    def test_on_the_host_every_row_is_listed_and_none_is_met(self):
        result, done = self.json_of("bench", "targets", *SMALL)
        rows = result["targets"]
        self.assertGreaterEqual(len(rows), 15)
        for row in rows:
            self.assertEqual(row["verdict"], "not measured", row)
            self.assertTrue(row["why"])
            if "figure" in row:
                self.assertIs(row["figure"]["verified"], True, row)
        self.assertIn("environment", result)
        self.assertIn("not measured", done.stderr)
        divided = [row for row in rows if row["row"].endswith(f" {PARTS_USUAL} parts")]
        self.assertEqual([row["figure"]["control_blocks"] for row in divided], [PARTS_USUAL] * 3)
        for row in divided:
            self.assertTrue(is_number_or_none(row["figure"]["one_control_block"]))
        one = [row for row in rows if "window 1024" in row["row"]]
        self.assertEqual([row["figure"]["control_blocks"] for row in one], [1])

    def test_a_wrong_result_fails_the_command(self):
        result, _ = self.json_of("bench", "targets", *SMALL, "--lose-a-task", code=1)
        self.assertNotIn("met", [row["verdict"] for row in result["targets"]])


class BadUsage(CliTest):
    def test_an_unknown_or_missing_benchmark_is_refused_with_the_known_ones(self):
        self.refused("bench", names=("chain", "targets"))
        self.refused("bench", "chains", names=("chains", "chain", "targets"))

    def test_numbers_out_of_bounds_are_refused(self):
        for flag, value in (("--repeat", 0), ("--seconds", 0), ("--seconds", "nan"),
                            ("--tasks", 10_000_001), ("--window", 8), ("--ring", 2), ("--parts", 0), ("--parts", 9)):
            self.refused("bench", "chain", "--device", "host", flag, value, names=(flag,))
        for width in (0, 257):
            self.refused("bench", "fan", "--device", "host", "--width", width, names=("--width",))
        self.refused("bench", "chain", "--tasks", "many", names=("--tasks",))

    def test_a_flag_that_the_benchmark_does_not_take_is_refused(self):
        for flag, value, taker in (("--width", 3, "fan"), ("--pattern", "tree", "metg"), ("--buffers", 3, "metg"), ("--engines", "slipstream", "metg"),
                                   ("--engine", "slipstream", "metg")):
            for name in ("chain", "targets", "metg" if taker == "fan" else "fan"):
                self.refused("bench", name, *SMALL, flag, value, names=(f"bench {name}", flag, f"'bench {taker}'"))

    def test_flags_that_would_change_nothing_are_refused(self):
        for name, flag, *value in (("idle", "--tasks", 40), ("echo", "--seconds", 1), ("submit", "--seconds", 1), ("bus", "--seconds", 1), ("window", "--window", 64),
                                   ("idle", "--workers-per-sm", 2), ("bodies", "--workers-per-sm", 2), ("floors", "--no-staging"), ("guard", "--tasks", 40),
                                   ("guard", "--window", 64)):
            device = () if name in ("floors", "guard") else ("--device", "host")
            self.refused("bench", name, *device, flag, *value, names=(f"bench {name}", flag, "leave it out"))

    def test_parts_are_refused_where_the_memory_would_lie_in_one(self):
        for name in ("chain", "fan", "blocks", "parts", "bodies", "large", "idle", "growth"):
            self.refused("bench", name, *SMALL_IDLE, "--parts", 2, names=(f"bench {name}", "--parts", "throughput", "targets"))

    def test_floors_and_guard_need_a_gpu(self):
        for name in ("floors", "guard"):
            self.refused("bench", name, "--device", "host", names=(name, "--device"))

    def test_unknown_devices_and_files_are_refused(self):
        self.refused("bench", "chain", "--device", "tpu", names=("tpu",))
        self.refused("bench", "chain", *SMALL, "--json", self.path("no/such/folder.json"), names=("--json",))


if __name__ == "__main__":
    cli_harness.main()
