"""Runs the slipstream binary for the tests of this folder, and writes the smallest trace pair they need.

Each test file is a program: FILE.py PATH-OF-SLIPSTREAM. Needs only the standard library.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

RUN_SECONDS_MAX = 120


def binary():
    return os.environ["SLIPSTREAM_BINARY"]


def main():
    os.environ["SLIPSTREAM_BINARY"] = sys.argv.pop(1)
    unittest.main(verbosity=2)


def gpu_event(name, category, ts, dur, external, correlation, stream=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur,
            "args": {"External id": external, "device": 0, "stream": stream, "correlation": correlation, **args}}


def kernel(name, ts, dur, external, correlation, grid):
    return gpu_event(name, "kernel", ts, dur, external, correlation, grid=grid, block=[128, 1, 1], **{"shared memory": 0})


def call(ts, external, correlation, name="cudaLaunchKernel"):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": 3,
            "args": {"External id": external, "correlation": correlation}}


def op(name, ts, external, record_function):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": 20,
            "args": {"External id": external, "Record function id": record_function}}


def tensor(storage, offset, numel):
    """A float tensor of an execution trace: id, storage, offset in elements, elements, bytes of one, device."""
    return [1000 + storage, storage, offset, numel, 4, "cuda:0"]


def node(name, number, schema, inputs, outputs):
    return {"name": name, "id": number, "rf_id": number, "parent": 2, "scope": 0, "tid": 1, "op_schema": schema,
            "inputs": inputs, "input_shapes": [[] for _ in inputs], "outputs": outputs, "output_shapes": [[] for _ in outputs]}


def kineto_json():
    """relu: A -> B. relu: B -> C. add_: B (in place). relu: D -> C. copy_: C -> A. relu: E -> D. Edges by hand in EDGES."""
    return {"schemaVersion": 1, "traceEvents": [
        op("aten::relu", 10, 2, 4), op("aten::relu", 40, 3, 5), op("aten::add_", 70, 4, 6), op("aten::relu", 100, 5, 7),
        op("aten::copy_", 130, 6, 8), op("aten::relu", 160, 7, 9),
        call(12, 2, 100), call(42, 3, 101), call(72, 4, 102), call(102, 5, 103), call(132, 6, 104, "cudaMemcpyAsync"),
        call(162, 7, 105),
        kernel("relu_1", 200, 8, 2, 100, [8, 1, 1]), kernel("relu_2", 210, 5, 3, 101, [2, 2, 1]),
        kernel("add_1", 220, 4, 4, 102, [1, 1, 1]), kernel("relu_3", 230, 3, 5, 103, [3, 1, 1]),
        gpu_event("Memcpy DtoD", "gpu_memcpy", 240, 2, 6, 104, bytes=256), kernel("relu_4", 250, 2, 7, 105, [1, 1, 1]),
    ]}


A, B, C, D, E = 50, 51, 52, 53, 54
TASKS = 6
# 1<-0 RAW(B) · 2<-0 RAW+WAW(B) · 2<-1 WAR(B) · 3<-1 WAW(C) · 4<-3 RAW(C) · 4<-0 WAR(A) · 5<-3 WAR(D)
EDGES = {"total": 7, "RAW": 2, "WAR": 3, "WAW": 1, "RAW+WAR": 0, "RAW+WAW": 1, "WAR+WAW": 0, "RAW+WAR+WAW": 0}


def et_json():
    relu = "aten::relu(Tensor self) -> Tensor"
    add = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    copy = "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"
    a, b, c, d, e = (tensor(s, 0, 64) for s in (A, B, C, D, E))
    return {"schema": "1.0.1", "pid": 7, "time": "now", "start_ts": 1, "nodes": [
        {"name": "[pytorch|profiler|execution_graph|thread]", "id": 2, "rf_id": 0, "parent": 1, "scope": 7, "tid": 1,
         "op_schema": "", "inputs": [], "input_shapes": [], "outputs": [], "output_shapes": []},
        node("aten::relu", 4, relu, [a], [b]), node("aten::relu", 5, relu, [b], [c]), node("aten::add_", 6, add, [b, 1, 1], [b]),
        node("aten::relu", 7, relu, [d], [c]), node("aten::copy_", 8, copy, [a, c, False], [a]),
        node("aten::relu", 9, relu, [e], [d]),
    ], "finish_ts": 2}


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="slipstream-cli-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        """Text, bytes, or something to be written as JSON; gzip by the ending of the name. Returns the path."""
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        data = content.encode() if isinstance(content, str) else content
        with open(self.path(name), "wb") as file:
            file.write(gzip.compress(data) if name.endswith(".gz") else data)
        return self.path(name)

    def pair(self):
        return self.write("run.kineto.json.gz", kineto_json()), self.write("run.et.json", et_json())

    def run_cli(self, *arguments, code=0):
        done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=RUN_SECONDS_MAX)
        self.assertEqual(done.returncode, code, f"{arguments}\nstdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        return done

    def json_of(self, *arguments, code=0):
        """stdout must be one JSON value and nothing else."""
        done = self.run_cli(*arguments, "--json", "-", code=code)
        return json.loads(done.stdout), done

    def refused(self, *arguments, names=(), code=2):
        """Exit code 2 and exactly one line on stderr that holds all of `names`; nothing on stdout."""
        done = self.run_cli(*arguments, code=code)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, f"not one line: {done.stderr!r}")
        self.assertEqual(done.stdout, "")
        for name in names:
            self.assertIn(str(name), lines[0])
        return lines[0]
