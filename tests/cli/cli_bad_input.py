"""Bad input and bad usage: exit code 2, one line on stderr that names file, place and remedy; no crash, no hang."""
import gzip
import json
import os
import pathlib

import cli_harness
from cli_harness import CliTest, et_json, kineto_json


class BadUsage(CliTest):
    def test_nothing_to_do(self):
        self.refused(names=["--help"])
        self.refused("frobnicate", names=["frobnicate: unknown command", "devices, replay, run, compare, bench or soak", "'slipstream --help'"])
        self.refused("frobnicate", "--now", names=["frobnicate: unknown command"])
        self.refused("--now", names=["not expected: --now;", "'slipstream --help'"])
        self.refused("soak", "--window", 16, "--ring", 4, names=["not expected: --window 16 --ring 4;", "'slipstream soak --help'"])
        self.refused("replay", names=["--et"])
        self.refused("run", names=["--list"])
        self.refused("replay", "--no-such-flag", names=["--no-such-flag", "slipstream replay --help"])

    def test_an_unknown_engine_names_the_known_ones(self):
        kineto, et = self.pair()
        self.refused("replay", kineto, "--et", et, "--device", "host", "--engine", "warp-drive", names=["warp-drive", "serial", "slipstream"])
        self.refused("replay", kineto, "--device", "host", "--engine", "serial,", names=["--engine"])
        self.refused("replay", kineto, "--device", "host", "--engine", "", names=["--engine"])
        self.refused("run", "random-dag", "--device", "host", "--engine", "warp-drive", names=["warp-drive", "serial"])
        self.refused("replay", kineto, "--analyze", "--engine", "warp-drive", names=["warp-drive"])

    def test_an_unknown_device_names_the_known_ones(self):
        kineto, _ = self.pair()
        for device in ("tpu", "cuda:", "cuda:x", "cuda:-1", "host:0", ""):
            self.refused("replay", kineto, "--device", device, names=["--device", "auto, cuda, cuda:N or host"])
        self.refused("replay", kineto, "--device", "tpu", "--analyze", names=["tpu"])
        self.refused("run", "random-dag", "--device", "cuda:99", names=["cuda:99", "slipstream devices"])

    def test_impossible_numbers(self):
        kineto, _ = self.pair()
        for command in (("replay", kineto), ("run", "random-dag")):
            for flag, values in {"--window": ("0", "15", "-1", "many", "99999999999999999999"), "--ring": ("0", "3", "1.5"),
                                 "--workers-per-sm": ("0", "3"), "--parts": ("0", "9", "-1", "1.5"), "--repeat": ("0",), "--seed": ("-1", "x")}.items():
                for value in values:
                    self.refused(*command, "--device", "host", flag, value, names=[flag])

    def test_a_number_is_refused_as_it_was_typed_with_its_bounds(self):
        top = 2 ** 64 - 1
        for command, flag, value, wanted in (
                ("run", "--seed", "-1", f"a whole number from 0 to {top}"), ("run", "--seed", "abc", f"a whole number from 0 to {top}"),
                ("replay", "--seed", top + 1, f"a whole number from 0 to {top}"), ("soak", "--seed", top + 1, f"a whole number from 0 to {top}"),
                ("soak", "--tasks", "-1", f"a whole number from 0 to {top} (0: as many as time allows)"),
                ("soak", "--tasks", "9" * 23, f"a whole number from 0 to {top} (0: as many as time allows)"),
                ("soak", "--start-position", "-1", f"a whole number from 0 to {2 ** 54}"),
                ("soak", "--seconds", "-1", "a number from 0 to 1000000 (0: as long as the tasks take)"),
                ("bench", "--tasks", "-1", "a whole number from 0 to 10000000 (0: what --seconds allow)"),
                ("bench", "--seconds", "0", "a number above 0 and up to 600"), ("bench", "--seconds", "-1", "a number above 0 and up to 600"),
                ("bench", "--seconds", "nan", "a number above 0 and up to 600"), ("bench", "--buffers", "x", "a whole number from 0 to 10000 (0: one for each step)"),
                ("compare", "--tasks", "-1", "a whole number from 0 to 10000000 (0: what keeps a point short)"),
                ("run", "--window", "-1", "a whole number from 16 to 4096"), ("run", "--window", "x", "a whole number from 16 to 4096"),
                ("run", "--window", "0x20", "a whole number from 16 to 4096"), ("run", "--window", "32 ", "a whole number from 16 to 4096"),
                ("run", "--ring", 2 ** 32, f"a whole number from 4 to {2 ** 24}"), ("run", "--timeline-entries", "2.5", "a whole number from 64 to 1048576")):
            self.assertIn(f"{flag} {value}: give {wanted}", self.refused(command, flag, value))
        self.assertIn("--window '': give", self.refused("run", "--window", ""))

    def test_an_option_without_its_value_does_not_take_the_next_option_for_it(self):
        for command in (("bench", "chain", "--json", "--device", "host"), ("soak", "--json", "--device", "host"), ("devices", "--json", "--help"),
                        ("run", "random-dag", "--json=--device"), ("compare", "demo", "--json", "--")):
            self.assertIn("--json: needs a value", self.refused(*command))
        self.refused("soak", "--break", "--device", "host", names=["--break: needs a value"])
        self.refused("run", "random-dag", "--window", "--ring", 8, names=["--window: needs a value"])
        self.refused("compare", "--sweep", "--tasks", 8, names=["--sweep: needs a value"])
        self.assertFalse(os.path.exists("--device"))

    def test_an_empty_value_is_none(self):
        for command in (("soak", "--case", "", "--tasks", 100), ("run", "random-dag", "--json", ""), ("compare", "demo", "--seeds", ""),
                        ("replay", "x.json", "--et="), ("run", "random-dag", "--timeline", "")):
            self.refused(*command, "--device", "host", names=[command[2].rstrip("="), "needs a value"])

    def test_no_file_that_is_read_or_written_otherwise_is_overwritten(self):
        kineto, et = self.pair()

        def contents():
            return [pathlib.Path(name).read_bytes() for name in (kineto, et)]

        before = contents()
        os.symlink(kineto, self.path("link.json"))
        for name in (kineto, et, self.path("link.json"), os.path.relpath(kineto)):
            self.refused("replay", kineto, "--et", et, "--analyze", "--json", name, names=["--json", name, "the same file as"])
            self.refused("replay", kineto, "--et", et, "--device", "host", "--timeline", name, names=["--timeline", name, "the same file as"])
        self.refused("compare", f"{kineto}+{et}", "--device", "host", "--json", et, names=["--json", "the same file as"])
        out = self.path("out.json")
        for command in (("replay", kineto), ("run", "random-dag")):
            self.refused(*command, "--device", "host", "--json", out, "--timeline", out, names=["--timeline", "the same file as"])
        self.assertEqual(contents(), before)
        self.assertFalse(os.path.exists(out))

    def test_a_report_that_cannot_be_written_is_no_bad_usage(self):
        kineto, _ = self.pair()
        self.run_cli("replay", kineto, "--analyze", "--json", "/dev/full", code=1)

    def test_numbers_are_decimal(self):
        result, _ = self.json_of("run", "random-dag", "tasks=20", "--device", "host", "--repeat", 1, "--window", "0020", "--seed", 2 ** 64 - 1)
        self.assertEqual((result["environment"]["window"], result["environment"]["seed"]), (20, 2 ** 64 - 1))

    def test_workload_names_and_parameters(self):
        self.refused("run", "no-such-workload", names=["no-such-workload", "random-dag"])
        self.refused("run", "random-dag", "--device", "host", "no_such=1", names=["no_such", "width"])
        self.refused("run", "random-dag", "--device", "host", "width", names=["width", "NAME=VALUE"])
        self.refused("run", "random-dag", "--device", "host", "width=wide", names=["width"])
        self.refused("run", "cholesky", "--device", "host", "tiles=4", "tiles=5", names=["tiles is given twice"])
        for arguments in (("nope",), ("random-dag",), ("random-dag", "width=4")):
            self.refused("run", "--list", *arguments, names=[f"run --list {arguments[0]}"])
        self.refused("run", "cholesky", "--device", "host", "tile=40", names=["tile", "multiple of 16"])
        self.refused("run", "qr", "--device", "host", "precision=fp16", names=["fp16", "fp32 or fp64"])
        self.refused("run", "qr", "--device", "host", "--break", "RAW", names=["--break"])
        self.refused("run", "pipeline", "--device", "host", "--break", "WAW", names=["WAW"])

    def test_a_json_file_that_cannot_be_written_is_refused_before_the_run(self):
        kineto, _ = self.pair()
        self.refused("replay", kineto, "--json", self.path("no/such/folder.json"), names=["--json", "folder.json"])


class BadInput(CliTest):
    def refused_file(self, path, *names, et=None):
        arguments = ["replay", path] + (["--et", et] if et else [])
        self.refused(*arguments, "--device", "host", names=names or [path])

    def test_a_missing_or_empty_file(self):
        kineto, _ = self.pair()
        missing = self.path("missing.json")
        self.refused_file(missing)
        self.refused_file(kineto, missing, et=missing)
        self.refused("replay", "--et", missing, "--device", "host", names=[missing])
        self.refused_file(self.write("empty.json", ""))
        self.refused_file(self.folder.name)  # a folder

    def test_a_truncated_gzip_file(self):
        whole = gzip.compress(json.dumps(kineto_json()).encode())
        for share in (0.2, 0.5, 0.9, 0.99):
            path = self.path("cut.kineto.json.gz")
            with open(path, "wb") as file:
                file.write(whole[:int(len(whole) * share)])
            self.refused_file(path)

    def test_truncated_and_malformed_json(self):
        text = json.dumps(kineto_json())
        for share in (0.1, 0.5, 0.95):
            self.refused_file(self.write("cut.json", text[:int(len(text) * share)]))
        for text in ("[1, 2", "{]", "nonsense", '{"traceEvents": [}]}', '{"traceEvents": [{"ph": "X", "dur": 1e}]}', "\0\0\0"):
            self.refused_file(self.write("malformed.json", text))
        et = json.dumps(et_json())
        self.refused_file(self.write("k.json", kineto_json()), "cut.et.json", et=self.write("cut.et.json", et[:len(et) // 2]))

    def test_wrong_types(self):
        for text in ("42", '"text"', "null", "[]", "{}", '{"traceEvents": 7}', '{"traceEvents": {"a": 1}}'):
            self.refused_file(self.write("wrong.json", text))
        kineto = self.write("k.json", kineto_json())
        for text in ("[]", "{}", '{"schema": 3, "nodes": "none"}', '{"schema": "1.0.1", "nodes": 3}'):
            self.refused_file(kineto, "wrong.et.json", et=self.write("wrong.et.json", text))

    def test_nesting_200_000_deep(self):
        depth = 200_000
        for text in ("[" * depth, "[" * depth + "]" * depth, '{"a":' * depth, '{"traceEvents": ' + "[" * depth + "]" * depth + "}"):
            self.refused_file(self.write("deep.json", text))
        self.refused("replay", "--et", self.write("deep.et.json", '{"nodes": ' + "[" * depth), "--device", "host", names=["deep.et.json"])

    def test_an_execution_trace_of_another_run(self):
        kineto = self.write("k.json", kineto_json())
        other = et_json()
        for node in other["nodes"][1:]:
            node["name"] = "aten::something_else"
            node["rf_id"] += 1000
        self.refused_file(kineto, "other.et.json", et=self.write("other.et.json", other))

    def test_two_files_given_the_wrong_way_round(self):
        kineto, et = self.pair()
        self.refused_file(et, et=kineto)

    def test_a_file_name_with_a_line_break_stays_on_one_line(self):
        self.refused("replay", self.path("two\nlines.json"), names=["lines.json"])


if __name__ == "__main__":
    cli_harness.main()
