"""slipstream soak on the host device: streams verify, a hidden access is found and shrunk, bad usage is refused."""
import re
import cli_harness
from cli_harness import CliTest

STYLES = {"light", "dense", "tiles", "handles", "wide", "failing", "mixed"}


class Soak(CliTest):
    def test_every_style_verifies_and_the_totals_add_up(self):
        result, done = self.json_of("soak", "--device", "host", "--tasks", 9000, "--stream-tasks", 400, "--seed", 3)
        self.assertIs(result["verified"], True)
        self.assertEqual(result["mismatches"], 0)
        totals = result["totals"]
        self.assertEqual(set(totals), STYLES | {"all"})
        for key in ("cases", "streams", "tasks", "launches", "pauses"):
            self.assertEqual(totals["all"][key], sum(totals[style][key] for style in STYLES), key)
        self.assertGreaterEqual(totals["all"]["tasks"], 9000)
        self.assertEqual(totals["all"]["tasks"], sum(case["tasks"] for case in result["cases"]))
        self.assertEqual(result["environment"]["device"], "host")
        self.assertIn("NOT GPU times", done.stderr)
        self.assertIn("0 mismatches", done.stderr)

    def test_a_hidden_access_is_found_shrunk_and_found_again_by_the_printed_command(self):
        result, done = self.json_of("soak", "--device", "host", "--seconds", 60, "--stream-tasks", 300, "--break", "RAW", "--style", "dense", code=1)
        self.assertIs(result["verified"], False)
        failure = result["failure"]
        self.assertIs(failure["failed_again"], True)
        # Two tasks do it (unit.soak); on a busy machine a smaller case may fail to fail in all its trials.
        self.assertTrue(2 <= failure["tasks_left"] < 30, failure["tasks_left"])
        printed = re.findall(r"again: slipstream (soak .*)", done.stderr)
        self.assertEqual(len(printed), 2)  # as it was, and as small as it became
        again, _ = self.json_of(*printed[1].split(), "--seconds", 30, code=1)
        self.assertIs(again["verified"], False)

    def test_one_case_by_its_text(self):
        result, _ = self.json_of("soak", "--device", "host", "--tasks", 1000, "--case",
                                 "style=mixed,seed=5,tasks=500,window=2,ring=2,start=4294967000")
        self.assertIs(result["verified"], True)
        self.assertIn("window=2", result["cases"][0]["case"])
        self.assertGreaterEqual(result["totals"]["all"]["tasks"], 1000)

    def test_what_cannot_work_is_refused(self):
        self.refused("soak", "--device", "host", "--case", "windows=3", names=("windows", "window"))
        self.refused("soak", "--device", "host", "--style", "none", names=("none", "failing"))
        self.refused("soak", "--device", "host", "--break", "RAR", names=("RAR", "RAW"))
        self.refused("soak", "--device", "host", "--seconds", "-1", names=("--seconds",))
        self.refused("soak", "--device", "gpu", names=("gpu", "host"))


if __name__ == "__main__":
    cli_harness.main()
