"""Reads what `slipstream compare`, `replay` and `run` write with --json into what tables and figures show.

The file may be anybody's: every value that is used is checked for its type and range first, and its size and number are bounded.
"""
import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

FILE_BYTES_MAX = 64 << 20
SUBJECTS_MAX = 100     # a figure of all has a row for each
ENGINES_MAX = 64
VALUES_MAX = 1000      # of a list
TEXT_MAX = 1000        # longer text is cut
NUMBER_MAX = 1e18
REQUIRED = object()

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
    slug: str = ""       # its figure's name, which no other one has


    def engine(self, name):
        return next((e for e in self.engines if e.name == name), None)

    def over_serial(self, engine):
        serial = self.engine("serial")
        return serial.median / engine.median if serial and serial.verified and serial.median and engine.median else None

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
    slug: str = ""       # as of a subject

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
        return f"window {e['window']}, ring {e['ring']}" + (f" of each of {e['parts']} parts" if e["parts"] > 1 else "")

    def commit(self, digits=12):
        commit = self.environment["commit"]
        return commit[:digits] + ("-dirty" if commit.endswith("-dirty") else "")


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "untitled"


class Part:
    """An object of the JSON, asked for its members by name and type. ValueError names the member that is missing or will not do."""

    def __init__(self, value, place):
        if not isinstance(value, dict):
            raise ValueError(f"{place or 'the whole'} is no object")
        self.value, self.place = value, place

    def _get(self, key, default, read):
        place = f"{self.place}.{key}" if self.place else key
        if key not in self.value and default is REQUIRED:
            raise ValueError(f"{place} is missing")
        value = self.value.get(key)
        return default if value is None and default is not REQUIRED else read(value, place)

    def part(self, key, default=REQUIRED):
        return self._get(key, default, Part)

    def number(self, key, default=REQUIRED):
        return self._get(key, default, number_of)

    def text(self, key, default=REQUIRED):
        return self._get(key, default, text_of)

    def flag(self, key, default=REQUIRED):
        return self._get(key, default, flag_of)

    def list(self, key, read, most, default=REQUIRED):
        def read_all(value, place):
            if not isinstance(value, list) or len(value) > most:
                raise ValueError(f"{place} is no list of at most {most}")
            return [read(item, f"{place}[{i}]") for i, item in enumerate(value)]
        return self._get(key, default, read_all)


def number_of(value, place):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= NUMBER_MAX:
        raise ValueError(f"{place} is no number from 0 to {NUMBER_MAX:g}")
    return value


def number_or_none(value, place):
    return None if value is None else number_of(value, place)


def text_of(value, place):
    if not isinstance(value, str):
        raise ValueError(f"{place} is no text")
    # What XML cannot hold would spoil a figure.
    return re.sub("[^\t -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", value[:TEXT_MAX])


def flag_of(value, place):
    if not isinstance(value, bool):
        raise ValueError(f"{place} is neither true nor false")
    return value


def engine_of(run, tasks):
    def each(key):
        value = run.part(key, None)
        return value.number("median") / tasks if value else None

    def counted(key):
        value, repeats = run.number(key, None), run.number("repeats")
        return value / repeats / tasks if value is not None and repeats else None

    name, makespan = run.text("engine"), run.part("makespan_us")
    build = run.part("build_and_replay_us", None)
    return Engine(name, kind_of(name), makespan.number("median"), makespan.number("p10"), makespan.number("p90"), makespan.number("p99", None),
                  run.flag("verified"), each("cpu_us"), each("submit_us"), counted("bus_bytes_to_gpu"), counted("bus_bytes_to_host"),
                  run.number("scheduling_sms", None), build.number("median") if build else None)


def tasks_of(part):
    tasks = part.number("tasks")
    if tasks < 1:
        raise ValueError(f"{part.place}.tasks is not at least 1")
    return tasks


def subject_of(part, tasks, title, bounds=None, notes=()):
    runs = part.list("runs", Part, ENGINES_MAX)
    repeats = max((run.number("repeats") for run in runs), default=0)
    return Subject(title, tasks, [engine_of(run, tasks) for run in runs], repeats, bounds, list(notes))


def bounds_of(part):
    bounds = part.part("bounds", None)
    if bounds is None:
        return None
    return {key: bounds.number(key) for key in ("critical_path_us", "critical_path_tasks", "work_us", "workers", "lowest_us")}


def compared_subject(part):
    return subject_of(part, tasks_of(part), part.text("title"), bounds_of(part), part.list("notes", text_of, VALUES_MAX, []))


def curve_of(part, points):
    us = part.list("us_per_task", number_or_none, VALUES_MAX)
    if len(us) != points:
        raise ValueError(f"{part.place}.us_per_task is no value for each of {points} points")

    def crossing(value, place):
        at = Part(value, place)
        return {"at": at.number("at"), "slipstream_wins_above": at.flag("slipstream_wins_above")}

    return {"engine": part.text("engine"), "us_per_task": us, "slipstream_wins_first": part.flag("slipstream_wins_first", None),
            "crossovers": part.list("crossovers", crossing, VALUES_MAX, []), "half_of_bound_from": part.number("half_of_bound_from", None),
            "nine_tenths_of_bound_from": part.number("nine_tenths_of_bound_from", None)}


def sweep_of(part):
    points = part.list("points", Part, VALUES_MAX)
    values = [p.number("value") for p in points]
    if any(later <= earlier for earlier, later in zip(values, values[1:])):
        raise ValueError(f"{part.place}.points do not ascend")
    bounds = [bounds_of(p) for p in points]
    bound = [b["lowest_us"] / tasks_of(p) if b else None for p, b in zip(points, bounds)]
    curves = [curve_of(c, len(points)) for c in part.list("curves", Part, ENGINES_MAX)]
    return Sweep(part.text("title"), part.text("axis"), part.text("label"), values, bound, curves, part.list("measured_once", text_of, ENGINES_MAX))


def environment_of(part):
    out = {key: part.text(key) for key in ("cpu", "commit", "date", "command")}
    out.update({key: part.text(key, "") for key in ("gpu", "driver", "cuda_runtime")})
    out.update({key: int(part.number(key)) for key in ("window", "ring")})
    out["parts"] = int(part.number("parts", 1))
    return out


def name_figures(subjects, sweeps):
    """Two of one name would be one file."""
    drawn = [(s, slug(s.title)) for s in subjects] + [(s, slug(f"sweep-{s.title}-{s.axis}")) for s in sweeps]
    taken = {"overview"}
    for what, name in drawn:
        what.slug, number = name, 2
        while what.slug in taken:
            what.slug, number = f"{name}-{number}", number + 1
        taken.add(what.slug)


def parse(text):
    """The comparison in a text; ValueError says what is wrong with it."""
    def finite(word):
        value = float(word)
        if not math.isfinite(value):
            raise ValueError(f"{word} is no number")
        return value

    try:
        result = json.loads(text, parse_float=finite, parse_constant=finite)
    except RecursionError:
        raise ValueError("not readable as JSON (nested too deep)") from None
    except ValueError as error:
        raise ValueError(f"not readable as JSON ({error})") from None
    try:
        root = Part(result, "")
        command = root.text("command")
        if command not in ("compare", "replay", "run"):
            raise ValueError(f"the JSON of 'slipstream {command}', which is no comparison; use that of compare, replay or run")
        sweeps = []
        if command == "compare":
            subjects = [compared_subject(part) for part in root.list("subjects", Part, SUBJECTS_MAX)]
            sweeps = [sweep_of(part) for part in root.list("sweeps", Part, SUBJECTS_MAX)]
        elif command == "replay":
            trace = root.part("trace")
            subjects = [subject_of(root, tasks_of(trace), Path(trace.text("kineto") or trace.text("et")).name.split(".")[0])]
        else:
            workload = root.part("workload")
            subjects = [subject_of(root, tasks_of(workload), workload.text("name"))]
        environment = environment_of(root.part("environment"))
    except ValueError as error:
        if "no comparison" in str(error):
            raise
        raise ValueError(f"not the JSON of 'slipstream compare', 'replay' or 'run' ({error})") from None
    name_figures(subjects, sweeps)
    digest = hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:16]
    return Comparison(environment, subjects, sweeps, digest)


def load(path):
    """The comparison in a file; ValueError names the file and says what is wrong with it."""
    try:
        file = Path(path)
        if not file.is_file():
            raise OSError("no such file, or no regular one")
        if file.stat().st_size > FILE_BYTES_MAX:
            raise OSError(f"larger than {FILE_BYTES_MAX} bytes")
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error})") from None
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
