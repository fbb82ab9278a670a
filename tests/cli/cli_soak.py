"""slipstream soak on the host device: streams verify, a hidden access is found and shrunk, bad usage is refused."""
import re
import cli_harness
from cli_harness import CliTest

STYLES = {"light", "dense", "tiles", "handles", "wide", "rows", "failing", "mixed"}


class Soak(CliTest):
    def test_every_style_verifies_and_the_totals_add_up(self):
        result, done = self.json_of("soak", "--device", "host", "--tasks", 9000, "--stream-tasks", 400, "--seed", 3)
        self.assertIs(result["verified"], True)
        self.assertEqual(result["mismatches"], 0)
        totals = result["totals"]
        self.assertEqual(set(totals), STYLES | {"all"})
        for key in ("cases", "cases_with_parts", "streams", "tasks", "launches", "pauses", "broadcasts"):
            self.assertEqual(totals["all"][key], sum(totals[style][key] for style in STYLES), key)
        self.assertGreaterEqual(totals["all"]["tasks"], 9000)
        self.assertEqual(totals["all"]["tasks"], sum(case["tasks"] for case in result["cases"]))
        self.assertEqual(result["environment"]["device"], "host")
        self.assertIn("NOT GPU times", done.stderr)
        self.assertIn("0 mismatches", done.stderr)

    def test_rows_are_mailed_to_all_workers_at_once_and_counted(self):
        case = "style=rows,seed=5,tasks=1000,workers=8"
        for more, sent in (("", True), (",broadcast=0", False), (",parts=2", False)):
            result, _ = self.json_of("soak", "--device", "host", "--tasks", 1000, "--case", case + more)
            self.assertIs(result["verified"], True)
            self.assertEqual(result["totals"]["rows"]["broadcasts"] > 0, sent, more)

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

    def test_some_of_the_cases_have_parts_with_one_submitting_thread_and_usual_sizes(self):
        result, _ = self.json_of("soak", "--device", "host", "--tasks", 6000, "--stream-tasks", 100, "--seed", 5)
        texts = [case["case"] for case in result["cases"]]
        some = [text for text in texts if "parts=" in text]
        self.assertTrue(0 < len(some) < len(texts), texts)
        self.assertEqual(result["totals"]["all"]["cases_with_parts"], len(some))
        for text in some:
            self.assertNotIn("threads=", text)
            self.assertNotIn("start=", text)
            self.assertLessEqual(int(re.search(r"parts=(\d+)", text)[1]), 3)

    def test_cases_with_parts_verify_by_their_text(self):
        for style, more in (("failing", "residency_ms=1"), ("mixed", "window=16,ring=4"), ("wide", "parks=1"), ("tiles", "placement=7,chaining=0"), ("handles", "staging=0"),
                            ("dense", "placement=12345,residency_ms=3,parks=1")):
            case = f"style={style},seed=5,tasks=400,parts=3,{more}"
            result, done = self.json_of("soak", "--device", "host", "--tasks", 1600, "--case", case)
            self.assertIs(result["verified"], True, done.stderr)
            self.assertIn("parts=3", result["cases"][0]["case"])
            self.assertEqual(result["totals"]["all"]["cases_with_parts"], 1)

    def test_a_hidden_access_is_found_with_parts_too(self):
        result, _ = self.json_of("soak", "--device", "host", "--seconds", 60, "--case", "style=mixed,seed=3,tasks=200,hide=1,workers=6,parts=2,placement=9", code=1)
        self.assertIs(result["verified"], False)

    def test_however_short_something_is_checked(self):
        result, done = self.json_of("soak", "--device", "host", "--seconds", "1e-6", "--stream-tasks", 50, "--style", "light")
        self.assertGreater(result["totals"]["all"]["tasks"], 0)
        self.assertIs(result["verified"], True)

    def test_what_cannot_work_is_refused(self):
        self.refused("soak", "--device", "host", "--stream-tasks", 1, names=("--stream-tasks 1", "2 tasks or more"))
        self.refused("soak", "--device", "host", "--case", "windows=3", names=("windows", "window"))
        self.refused("soak", "--device", "host", "--case", "parts=9", names=("parts=9", "8"))
        self.refused("soak", "--device", "host", "--case", "parts=2,threads=2,window=4", names=("one thread", "16 to 512 slots", "parts=1"))
        self.refused("soak", "--device", "host", "--case", "parts=2,start=5", names=("positions", "parts=1"))
        self.refused("soak", "--device", "host", "--style", "none", names=("none", "failing"))
        self.refused("soak", "--device", "host", "--break", "RAR", names=("RAR", "RAW"))
        self.refused("soak", "--device", "host", "--seconds", "-1", names=("--seconds",))
        # Tasks of rows would write more result words than the 22 bits of a key can tell apart: refused before anything runs.
        self.refused("soak", "--device", "host", "--stream-tasks", 1_000_000, names=("--stream-tasks 1000000: give a whole number from 0 to 261632",))
        self.refused("soak", "--device", "host", "--case", "style=rows,tasks=600000", names=("tasks=600000", "261632"))
        self.refused("soak", "--device", "gpu", names=("gpu", "host"))
        self.refused("soak", "--device", "host", "--case", "style=light,tasks=100,from=200", names=("from=200", "100"))
        self.refused("soak", "--device", "host", "--case", "style=light,tasks=100,keep=0", names=("keep=0",))
        for flag, value, instead in (("--style", "dense", "style=NAME"), ("--stream-tasks", 50, "tasks=N"), ("--start-position", 5, "start=N"),
                                     ("--break", "RAW", "hide=1")):
            self.refused("soak", "--device", "host", "--case", "style=light,seed=3,tasks=100", flag, value, names=("--case", flag, instead))


if __name__ == "__main__":
    cli_harness.main()
