"""Faults on the GPU, each in a process of its own: what is said, what works afterwards. FAULTS.py PATH-OF-fault_program.

Exit code 77 (SKIPPED) where there is no GPU."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

SECONDS_MAX = 60
NO_GPU = 77


def program():
    return os.environ["SLIPSTREAM_FAULT_PROGRAM"]


def run(fault, **environment):
    return subprocess.run([program(), fault], capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


class Faults(unittest.TestCase):
    def said(self, fault, **environment):
        """What the program said: {what: text}, of several lines where there are. It must have come to its end."""
        done = run(fault, **environment)
        self.assertEqual(done.returncode, 0, f"{fault}\nstdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        out, last = {}, None
        for line in done.stdout.splitlines():
            if line.startswith("  ") and last:
                out[last] += "\n" + line
            else:
                last, _, text = line.partition(": ")
                out[last] = text
        return out

    def has(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def healthy(self):
        start = time.monotonic()
        self.assertEqual(self.said("healthy")["new runtime on the GPU"], "nothing")
        return time.monotonic() - start

    def device_fault(self, fault, error, task="faulty"):
        said = self.said(fault)
        where = said["submission"]
        self.has(said["wait"], "device_error", error, "context is lost", "new process", "block 0 of spin 'bystander' (submission 0:",
                 "block 1 of spin 'bystander' (submission 0:", f"block 0 of {task} 'culprit' (submission {where})", "on SM", "hold no unfinished task")
        self.assertEqual(said["submit says the same"], "yes")
        self.assertEqual(said["what was done before"], "complete")
        self.assertEqual(said["runtime"], "destroyed")
        again = said["new runtime on the GPU"]
        if again != "nothing":  # where CUDA does not allow it, it says so
            self.has(again, "device_error", "new process")
        self.assertEqual(said["new runtime on the host"], "nothing")
        self.healthy()

    def test_an_illegal_address(self):
        self.device_fault("illegal", "cudaErrorIllegalAddress")

    def test_a_trap(self):
        self.device_fault("trap", "cudaError")

    def test_a_misaligned_access(self):
        self.device_fault("misaligned", "cudaErrorMisalignedAddress")

    def test_a_body_that_is_noexcept_and_fails(self):
        self.device_fault("broken_promise", "cudaError", "unfaithful")

    def test_a_body_that_never_ends_blocks_neither_deadlines_nor_the_end_of_the_process(self):
        start = time.monotonic()
        said = self.said("endless")
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(said["wait with a deadline"], "pending in time")
        self.has(said["wait"], "device_error", "no progress for", "config::stall_limit", "block 0 of spin 'never' (submission 0:0)", "does not leave")
        self.assertEqual(said["runtime"], "destroyed")
        self.assertEqual(said["end"], "of main")
        self.healthy()

    def test_a_body_that_never_ends_holds_up_the_end_of_its_runtime_for_exit_limit_at_most(self):
        start = time.monotonic()
        said = self.said("abandoned")
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(said["while it lives"], "pending")
        self.assertEqual(said["runtime"], "destroyed in time")
        self.assertEqual(said["end"], "of main")
        self.healthy()

    def test_an_engine_that_stands_still_leaves_in_order_and_says_what_waits_on_what(self):
        said = self.said("stall")
        self.has(said["wait"], "device_error", "no progress for", "window: ", "step 'second' (submission 0:", "waits for 0:")
        self.assertNotIn("does not leave", said["wait"])
        self.assertEqual(said["new runtime on the GPU"], "nothing")

    def test_an_engine_whose_workers_find_too_few_sms_says_so(self):
        said = self.said("held")
        self.has(said["wait"], "device_error", "no progress for", "its workers did not find the SMs they need")
        self.assertEqual(said["new runtime on the GPU"], "nothing")

    def test_a_killed_process_leaves_the_gpu_free(self):
        for fault in ("busy", "endless"):
            with subprocess.Popen([program(), fault], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as victim:
                late = threading.Timer(SECONDS_MAX, victim.kill)
                late.start()
                try:
                    line = victim.stdout.readline()  # tasks flow, or the body hangs
                finally:
                    late.cancel()
                    victim.kill()
                self.assertEqual(victim.wait(SECONDS_MAX), -signal.SIGKILL)
                self.assertIn("yes" if fault == "busy" else "in time", line)
            self.assertLess(self.healthy(), 30)

    def test_memory_that_is_not_there_and_sizes_that_do_not_fit_are_refused_with_a_remedy(self):
        said = self.said("memory")
        self.has(said["device memory"], "device_error", "cudaMalloc of 33554432 MiB found no room", "config::memory_bytes")
        self.has(said["pinned memory"], "device_error", "cudaHostAlloc of 33554432 MiB found no room", "config::staging_bytes")
        self.has(said["SMs"], "config_error", "sms_left_free", "needs two")
        self.has(said["ordinal"], "device_error", "no cuda:99", "cuda:0")
        self.assertEqual(said["new runtime on the GPU"], "nothing")

    def test_no_gpu_is_refused_with_a_remedy_and_the_host_device_works(self):
        said = self.said("problem", CUDA_VISIBLE_DEVICES="")
        self.has(said["new runtime on the GPU"], "device_error", "no NVIDIA GPU found", "CUDA_VISIBLE_DEVICES", "--device host")
        self.assertEqual(said["new runtime on the host"], "nothing")


if __name__ == "__main__":
    os.environ["SLIPSTREAM_FAULT_PROGRAM"] = sys.argv.pop(1)
    first = run("healthy")
    if first.returncode == NO_GPU:
        print(first.stdout, end="")
        sys.exit(NO_GPU)
    unittest.main(verbosity=2)
