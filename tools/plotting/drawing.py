"""Draws comparisons: one subject, all subjects, one sweep. See README.md of this folder."""
import math
import re
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen first)

from plotting.comparison_json import ALTERNATIVE, BASELINE, OWN, STATIC  # noqa: E402

matplotlib.rcParams.update({
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"], "font.size": 9,
    "text.parse_math": False,           # a title is no formula
    "svg.fonttype": "none",             # text stays text: small files, searchable
    "svg.hashsalt": "slipstream",       # the same data give the same file
    "hatch.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
})

# Colour and marker of each engine.
STYLE = {
    "serial": ("#999999", "s"), "streams": ("#56B4E9", "v"), "acs-sw": ("#0072B2", "^"), "graph-rebuild": ("#CC79A7", "P"),
    "graph-update": ("#009E73", "D"), "graph-replay": ("#000000", "X"), "slipstream": ("#D55E00", "o"),
    "slipstream-hostdep": ("#E69F00", "h"),
}
OTHER_STYLE = ("#F0E442", "*")
GREY = "#555555"
ORDER = [BASELINE, ALTERNATIVE, OWN, STATIC]  # from top to bottom


def style(engine):
    return STYLE.get(engine, OTHER_STYLE)


def number(value):
    """Three digits that mean something: 1930, 594, 12.3."""
    if value == 0:
        return "0"
    digits = max(0, 2 - int(math.floor(math.log10(abs(value)))))
    return f"{value:,.{digits}f}".replace(",", " ")


def times(ratio):
    return f"{ratio:.2f}×" if ratio >= 0.1 else f"{ratio:.1g}×"


def caption(figure, comparison, more=""):
    figure.text(0.01, 0.008, f"{comparison.hardware()} · commit {comparison.commit()}\n"
                             f"{comparison.settings()}{more}", fontsize=7, color=GREY, va="bottom", linespacing=1.5)


def save(figure, comparison, folder, name, ending):
    path = folder / f"{name}.{ending}"
    metadata = {"Title": name, "Description": f"data {comparison.data_digest}"}
    if ending == "svg":
        metadata["Date"] = None
    figure.savefig(path, metadata=metadata, dpi=150)
    plt.close(figure)
    return path


def draw_subject(subject, comparison, folder, ending="svg"):
    """A bar for each engine's makespan, whiskers from p10 to p90, the bounds as lines."""
    rows, y, last = [], 0.0, None
    for engine in sorted(subject.engines, key=lambda e: ORDER.index(e.kind)):
        if last is not None and engine.kind != last:
            y += 0.9 if engine.kind == STATIC else 0.35
        rows.append((y, engine))
        y, last = y + 1, engine.kind
        if engine.with_build:
            rows.append((y, replace(engine, name="with its building", median=engine.with_build, p10=engine.with_build, p90=engine.with_build)))
            y += 1
    height = 1.75 + 0.3 * y
    figure, axes = plt.subplots(figsize=(7.4, height))
    figure.subplots_adjust(left=0.2, right=0.97, top=1 - 0.78 / height, bottom=0.88 / height)
    longest = max([e.p90 for _, e in rows] + [0])
    limits = subject.bounds
    for at, engine in rows:
        colour = style(engine.name)[0]
        static = engine.kind == STATIC
        if not engine.verified:
            axes.text(0, at, "  did not verify", va="center", color=GREY)
            continue
        axes.barh(at, engine.median, height=0.72, color="white" if static else colour, edgecolor="#333333" if static else colour,
                  hatch="////" if static else None, linewidth=0.8)
        axes.errorbar(engine.median, at, xerr=[[max(engine.median - engine.p10, 0)], [max(engine.p90 - engine.median, 0)]], color="#222222",
                      capsize=2.5, linewidth=0.9)
        ratio = subject.over_serial(engine)
        text = f"{number(engine.median)} µs" + (f"  ({times(ratio)})" if ratio and engine.kind != BASELINE else "")
        axes.text(engine.p90 + 0.012 * longest, at, text, va="center", fontsize=8.5, fontweight="bold" if engine.name == "slipstream" else "normal",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85})
        if engine.name == "graph-replay":
            axes.text(0.006 * longest, at - 0.78, "static: knew all tasks beforehand", fontsize=7.5, color=GREY, va="center", style="italic",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4}, zorder=4)
    axes.set_xlim(0, 1.28 * longest if longest else 1)
    if limits:
        # Labels stand on the free side of their lines.
        lines = sorted([(limits["critical_path_us"], "critical path", "--"), (limits["work_us"], f"work / {limits['workers']} workers", ":")])
        for i, (x, text, dash) in enumerate(lines):
            axes.axvline(x, color="#222222", linestyle=dash, linewidth=1.1, zorder=3)
            left = i == 0 and x > 0.3 * longest
            axes.annotate(f"{text} {number(x)} µs", (x, 1.0), xycoords=("data", "axes fraction"), xytext=(-3 if left else 3, 3 + 10 * (1 - i)),
                          textcoords="offset points", fontsize=7.5, color="#222222", ha="right" if left else "left")
    axes.set_yticks([at for at, _ in rows], [e.name for _, e in rows])
    for tick, (_, engine) in zip(axes.get_yticklabels(), rows):
        tick.set_fontweight("bold" if engine.name == "slipstream" else "normal")
    axes.set_ylim(y - 0.45, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("makespan, µs (shorter is better; in brackets: speed-up over serial)")
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:,.0f}".replace(",", " ")))
    figure.suptitle(subject.title + ("" if " tasks" in subject.title else f", {subject.tasks} tasks"), x=0.01, y=1 - 0.12 / height, ha="left", fontsize=10.5, fontweight="bold")
    caption(figure, comparison, f"; bars: median of {subject.repeats} runs, whiskers: p10 to p90")
    return save(figure, comparison, folder, subject.slug, ending)


def legend_handle(engine):
    colour, marker = style(engine)
    ours = engine == "slipstream"
    static = engine == "graph-replay"
    return plt.Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=8.5 if ours else 6,
                      markerfacecolor="white" if static else colour, label=engine + (" (static)" if static else ""))


def draw_overview(subjects, comparison, folder, ending="svg", name="overview"):
    """Speed-up over serial of every engine, a row for each subject."""
    height = 1.75 + 0.52 * len(subjects)
    figure, axes = plt.subplots(figsize=(7.4, height))
    figure.subplots_adjust(left=0.34, right=0.97, top=1 - 0.95 / height, bottom=0.95 / height)
    engines = [e.name for e in max((s.engines for s in subjects), key=len) if e.kind != BASELINE]
    axes.axvline(1, color=GREY, linewidth=1)
    for row, subject in enumerate(subjects):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#F3F3F3", zorder=0)
        shown = [e for e in subject.engines if e.kind != BASELINE and e.verified and subject.over_serial(e)]
        ratios = [subject.over_serial(e) for e in shown]
        if ratios:
            axes.plot([min(ratios), max(ratios)], [row, row], color="#BBBBBB", linewidth=1, zorder=1)
        for engine, ratio in zip(shown, ratios):
            colour, marker = style(engine.name)
            ours = engine.name == "slipstream"
            axes.plot(ratio, row, marker=marker, color=colour, markersize=9.5 if ours else 6.5, linestyle="none",
                      markerfacecolor="white" if engine.kind == STATIC else colour, markeredgecolor=colour, zorder=4 if ours else 3)
            if ours:
                axes.annotate(times(ratio), (ratio, row), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=7.5,
                              fontweight="bold", color=colour)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}×" for t in ticks])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_yticks(range(len(subjects)), [wrapped(s.title) for s in subjects])
    axes.set_ylim(len(subjects) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("speed-up over serial (further right is better; logarithmic)")
    figure.suptitle("Speed-up over serial", x=0.01, y=1 - 0.12 / height, ha="left", fontsize=10.5, fontweight="bold")
    figure.legend(handles=[legend_handle(e) for e in engines], loc="upper left", bbox_to_anchor=(0.005, 1 - 0.3 / height), ncol=4, frameon=False,
                  fontsize=7.5, handletextpad=0.2, columnspacing=1.2)
    caption(figure, comparison, "; medians")
    return save(figure, comparison, folder, name, ending)


def wrapped(title, width=34):
    """A long title on lines of about one length, broken behind spaces, commas and colons."""
    lines = [""]
    share = len(title) / max(1, math.ceil(len(title) / width))
    for piece in re.findall(r"[^ ,:]*[ ,:]*", title):
        if lines[-1] and len(lines[-1]) + len(piece) / 2 > share:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def at_value(values, ys, x):
    """The curve at x, straight on logarithmic scales as crossovers are."""
    for x0, x1, y0, y1 in zip(values, values[1:], ys, ys[1:]):
        if x0 <= x <= x1 and y0 and y1:
            share = (x - x0) / (x1 - x0) if x0 <= 0 else math.log(x / x0) / math.log(x1 / x0)
            return math.exp(math.log(y0) + share * (math.log(y1) - math.log(y0)))
    return None


def sweep_label(curve):
    """The engine, and where slipstream and it change places."""
    places = ", ".join(number(c["at"]) for c in curve["crossovers"])
    return curve["engine"] + (" (static)" if curve["engine"] == "graph-replay" else "") + (("\n" if "," in places else "  ") + f"○ {places}" if places else "")


def draw_sweep(sweep, comparison, folder, ending="svg"):
    """Makespan a task against the swept parameter, a line for each engine; crossovers with slipstream are circled."""
    figure, axes = plt.subplots(figsize=(7.4, 4.9))
    figure.subplots_adjust(left=0.1, right=0.72, top=0.88, bottom=0.2)
    ours = sweep.curve("slipstream")
    handles = []
    curves = [c for c in sweep.curves if any(c["us_per_task"]) and "+" not in c["engine"]]
    for curve in sorted(curves, key=lambda c: -(next((y for y in reversed(c["us_per_task"]) if y), 0))):
        name = curve["engine"]
        colour, marker = style(name)
        points = [(x, y) for x, y in zip(sweep.values, curve["us_per_task"]) if y]
        line, = axes.plot(*zip(*points), color=colour, marker=marker, markersize=5 if name != "slipstream" else 6.5,
                          linewidth=2.4 if name == "slipstream" else 1.3, linestyle="--" if name in sweep.measured_once else "-",
                          markerfacecolor="white" if name == "graph-replay" else colour, zorder=4 if name == "slipstream" else 3,
                          label=sweep_label(curve))
        handles.append(line)
    bound = [(x, y) for x, y in zip(sweep.values, sweep.bound) if y]
    if bound:
        line, = axes.plot(*zip(*bound), color="#222222", linestyle=":", linewidth=1.3, label="bound")
        handles.append(line)
    axes.set_xscale("log" if sweep.values[0] > 0 else "linear")
    axes.set_yscale("log")
    marked = False
    for curve in curves if ours else []:
        for crossing in curve["crossovers"]:
            y = at_value(sweep.values, ours["us_per_task"], crossing["at"])
            if y:
                axes.plot(crossing["at"], y, marker="o", markersize=12, markerfacecolor="none", markeredgecolor=style(curve["engine"])[0],
                          markeredgewidth=1.6, zorder=5)
                marked = True
    axes.set_xticks(sweep.values, [f"{v:g}" for v in sweep.values])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)
    label = sweep.label.replace(" us", " µs")
    axes.set_xlabel(label)
    axes.set_ylabel("makespan a task, µs (lower is better)")
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    figure.suptitle(f"{sweep.title}: {label}", x=0.01, y=0.975, ha="left", fontsize=10.5, fontweight="bold")
    more = "; circles: where slipstream and the engine of that colour change places" if marked else ""
    if sweep.measured_once:
        more += "; dashed: has no window, measured once"
    caption(figure, comparison, more)
    return save(figure, comparison, folder, sweep.slug, ending)


def draw_all(comparison, folder, ending="svg"):
    """Every figure of a comparison; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [draw_subject(s, comparison, folder, ending) for s in comparison.subjects if s.engines]
    if len(comparison.subjects) > 1:
        paths.append(draw_overview(comparison.subjects, comparison, folder, ending))
    return paths + [draw_sweep(s, comparison, folder, ending) for s in comparison.sweeps if s.values]
