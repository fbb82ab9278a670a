"""Reads what `slipstream compare`, `replay` and `run` write with --json into what tables and figures show."""
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

BASELINE, ALTERNATIVE, STATIC, OWN = "baseline", "alternative", "static", "own"


def kind_of(engine):
    if engine == "serial":
        return BASELINE
    if engine == "graph-replay":
        return STATIC
    return OWN if engine.startswith("slipstream") else ALTERNATIVE


@dataclass
class Engine:
    """One engine's runs of one subject, microseconds; None where nothing is known."""
    name: str
    kind: str
    median: float
    p10: float
    p90: float
    p99: float | None
    verified: bool
    cpu_us: float | None = None         # of one task: all threads of the process
    submit_us: float | None = None      # of one task
    bytes_to_gpu: float | None = None   # of one task
    bytes_to_host: float | None = None
    scheduling_sms: float | None = None
    with_build: float | None = None     # graph-replay: the graph built once and replayed once


@dataclass
class Subject:
    title: str
    tasks: int
    engines: list
    repeats: int = 0
    bounds: dict | None = None
    notes: list = field(default_factory=list)

    @property
    def slug(self):
        return slug(self.title)

    def engine(self, name):
        return next((e for e in self.engines if e.name == name), None)

    def over_serial(self, engine):
        serial = self.engine("serial")
        return serial.median / engine.median if serial and serial.median and engine.median else None

    def best_alternative(self):
        return min((e for e in self.engines if e.kind == ALTERNATIVE and e.verified), key=lambda e: e.median, default=None)

    def of_bound(self, engine):
        return self.bounds["lowest_us"] / engine.median if self.bounds and engine.median else None

    def faster_than_ours(self):
        """Engines that slipstream loses to, the fastest first."""
        ours = self.engine("slipstream")
        if ours is None:
            return []
        return sorted((e for e in self.engines if e.verified and e.median < ours.median), key=lambda e: e.median)


@dataclass
class Sweep:
    title: str
    axis: str
    label: str
    values: list
    bound: list          # microseconds a task, None where unknown
    curves: list         # as the JSON has them
    measured_once: list

    @property
    def slug(self):
        return slug(f"sweep-{self.title}-{self.axis}")

    def curve(self, engine):
        return next((c for c in self.curves if c["engine"] == engine), None)


@dataclass
class Comparison:
    environment: dict
    subjects: list
    sweeps: list
    data_digest: str     # of the JSON: figures carry it

    def hardware(self):
        e = self.environment
        if not e.get("gpu"):
            return f"host device ({e['cpu']}): times are no GPU times"
        return f"{e['gpu']}, driver {e['driver']}, CUDA {e['cuda_runtime']}"

    def settings(self):
        e = self.environment
        return f"window {e['window']}, ring {e['ring']}"


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def engine_of(run, tasks):
    def each(key):
        value = run.get(key)
        return value["median"] / tasks if value and tasks else None

    def counted(key):
        return run[key] / run["repeats"] / tasks if key in run and run["repeats"] and tasks else None

    makespan = run["makespan_us"]
    build = run.get("build_and_replay_us")
    return Engine(run["engine"], kind_of(run["engine"]), makespan["median"], makespan["p10"], makespan["p90"], makespan.get("p99"),
                  run["verified"], each("cpu_us"), each("submit_us"), counted("bus_bytes_to_gpu"), counted("bus_bytes_to_host"),
                  run.get("scheduling_sms"), build["median"] if build else None)


def subject_of(part, title):
    tasks = part["tasks"]
    repeats = max((run["repeats"] for run in part["runs"]), default=0)
    return Subject(title, tasks, [engine_of(run, tasks) for run in part["runs"]], repeats, part.get("bounds"), part.get("notes", []))


def sweep_of(part):
    points = part["points"]
    bound = [p["bounds"]["lowest_us"] / p["tasks"] if p["bounds"] else None for p in points]
    return Sweep(part["title"], part["axis"], part["label"], [p["value"] for p in points], bound, part["curves"], part["measured_once"])


def load(path):
    """The comparison in a file; ValueError says what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        result = json.loads(text)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error})") from None
    try:
        if result["command"] == "compare":
            subjects = [subject_of(part, part["title"]) for part in result["subjects"]]
            sweeps = [sweep_of(part) for part in result["sweeps"]]
        elif result["command"] == "replay":
            trace = result["trace"]
            subjects = [subject_of({"tasks": trace["tasks"], "runs": result["runs"]}, Path(trace["kineto"] or trace["et"]).name.split(".")[0])]
            sweeps = []
        elif result["command"] == "run":
            subjects = [subject_of({"tasks": result["workload"]["tasks"], "runs": result["runs"]}, result["workload"]["name"])]
            sweeps = []
        else:
            raise ValueError(f"{path}: the JSON of 'slipstream {result['command']}', which is no comparison; use that of compare, replay or run")
        digest = hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:16]
        return Comparison(result["environment"], subjects, sweeps, digest)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the JSON of 'slipstream compare', 'replay' or 'run' ({error!r} is missing or of another type)") from None
