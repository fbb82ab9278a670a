"""--timeline: the recorded run as a Chrome trace, beside the comparison; what cannot be recorded is refused."""
import gzip
import json
import os

import cli_harness
from cli_harness import CliTest, TASKS


class Timeline(CliTest):
    def events(self, name):
        with open(self.path(name), "rb") as file:
            data = file.read()
        self.assertEqual(data[:2] == b"\x1f\x8b", name.endswith(".gz"))
        return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)

    def blocks_of(self, trace, process):
        """Blocks of each task that the spans of one engine show."""
        blocks = {}
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["pid"] == process and event["tid"] != 0:
                arguments = event["args"]
                for block in range(arguments["first_block"], arguments["first_block"] + arguments["blocks"]):
                    key = (arguments["task"], block)
                    self.assertNotIn(key, blocks)
                    blocks[key] = event["name"]
        return blocks

    def test_a_replay_writes_every_task_of_both_engines_with_its_recorded_name(self):
        kineto, et = self.pair()
        for name in ("run.json", "run.json.gz"):
            result, done = self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 1, "--timeline", self.path(name))
            self.assertEqual(len(result["runs"]), 3)  # the recorded run is not one of them
            self.assertIn("perfetto", done.stderr)
            trace = self.events(name)
            for process in (1, 2):
                blocks = self.blocks_of(trace, process)
                self.assertEqual({task for task, _ in blocks}, set(range(TASKS)))
                self.assertEqual(sum(task == 0 for task, _ in blocks), 8)  # its grid
                self.assertEqual(blocks[(0, 0)], "relu_1")
            for key in ("device", "gpu", "driver", "commit", "command", "date"):
                self.assertIn(key, trace["otherData"])
            self.assertIn("replay", trace["otherData"]["command"])

    def test_a_run_records_the_engines_that_were_chosen(self):
        self.run_cli("run", "random-dag", "tasks=200", "--device", "host", "--repeat", 1, "--engine", "serial,slipstream-hostdep", "--timeline",
                     self.path("dag.json"))
        trace = self.events("dag.json")
        processes = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
        self.assertEqual(processes, ["slipstream-hostdep"])
        self.assertEqual({task for task, _ in self.blocks_of(trace, 1)}, set(range(200)))
        self.assertEqual({event["name"] for event in trace["traceEvents"] if event["ph"] == "C"}, {"window", "ring"})

    def test_tasks_arrive_as_in_the_measured_runs(self):
        kineto, et = self.pair()
        file = self.path("preloaded.json")
        self.json_of("replay", kineto, "--et", et, "--device", "host", "--repeat", 1, "--mode", "preloaded", "--timeline", file)
        trace = self.events("preloaded.json")
        self.assertEqual({task for task, _ in self.blocks_of(trace, 1)}, set(range(TASKS)))
        self.assertEqual(self.blocks_of(trace, 2), {})  # slipstream-hostdep takes no preloaded tasks
        # Submission is no part of the run: it ends where that begins. Perfetto drops what lies before zero.
        for event in trace["traceEvents"]:
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreaterEqual(event.get("dur", 0), 0)
        host = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"] == 0}
        begin = float(trace["otherData"]["slipstream.run_begins_us"])
        self.assertGreater(begin, 0)
        self.assertAlmostEqual(host["submit"]["ts"] + host["submit"]["dur"], begin, delta=0.002)
        self.assertAlmostEqual(host["wait for the last task"]["ts"], begin, delta=0.002)
        self.assertAlmostEqual(host["wait for the last task"]["dur"], float(trace["otherData"]["slipstream.makespan_us"]), delta=0.002)

    def test_what_finds_no_room_is_said(self):
        done = self.run_cli("run", "random-dag", "tasks=3000", "blocks=1", "work_us=0.1", "whole=0", "--device", "host", "--repeat", 1,
                            "--engine", "slipstream", "--timeline", self.path("cut.json"), "--timeline-entries", 64)
        self.assertIn("--timeline-entries", done.stderr)
        trace = self.events("cut.json")
        notes = [event for event in trace["traceEvents"] if event["ph"] == "i"]
        self.assertEqual(len(notes), 1)
        self.assertGreater(notes[0]["args"]["lost_runs"], 0)
        self.assertEqual(trace["otherData"]["slipstream.lost_runs"], str(notes[0]["args"]["lost_runs"]))

    def test_a_broken_edge_fails_the_command(self):
        self.run_cli("run", "random-dag", "--device", "host", "--repeat", 10, "--engine", "slipstream", "--break", "RAW", "--timeline",
                     self.path("broken.json"), code=1)
        self.assertTrue(os.path.exists(self.path("broken.json")))


class BadUsage(CliTest):
    def test_no_engine_that_can_be_recorded(self):
        kineto, _ = self.pair()
        for command in (("replay", kineto), ("run", "random-dag")):
            self.refused(*command, "--device", "host", "--engine", "serial", "--timeline", self.path("t.json"),
                         names=["--timeline", "serial", "slipstream"])
            self.assertFalse(os.path.exists(self.path("t.json")))

    def test_nothing_runs(self):
        kineto, _ = self.pair()
        self.refused("replay", kineto, "--analyze", "--timeline", self.path("t.json"), names=["--timeline", "--analyze"])
        self.refused("devices", "--timeline", self.path("t.json"), names=["--timeline"])

    def test_a_file_that_cannot_be_written_is_refused_before_the_run(self):
        kineto, _ = self.pair()
        self.refused("replay", kineto, "--device", "host", "--timeline", self.path("no/such/t.json"), names=["--timeline", "t.json"])
        self.refused("run", "random-dag", "--device", "host", "--timeline", "-", names=["--timeline -", "file"])

    def test_impossible_numbers(self):
        for value in ("0", "63", "1048577", "many"):
            self.refused("run", "random-dag", "--device", "host", "--timeline", self.path("t.json"), "--timeline-entries", value,
                         names=["--timeline-entries"])


if __name__ == "__main__":
    cli_harness.main()
