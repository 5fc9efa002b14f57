"""`cute.testing.perf_report`: times over sizes, for several variants, as a table and a plot.

The form is that of Triton's `triton.testing.perf_report`, so that benchmarks move over unchanged.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from basedsl import DSLCallError
from basedsl_cute.algebra.explained_calls import explains_arguments

_NAN = float("nan")


@dataclass
class Benchmark:
    """A plot: what is on its axes.

    `x_names` are the arguments that each of `x_vals` sets (a tuple sets one each), `line_arg` is
    the argument whose values `line_vals` are the lines, called `line_names`. `plot_name` is the
    title and the name of files; `args` are further arguments. `xlabel` and `ylabel` are the titles
    of the axes, the first by default `x_names`; `x_log`, `y_log` make an axis logarithmic. `styles`
    are (colour, line style) of matplotlib for each line.

    Raises DSLCallError if there are not as many lines as names.
    """

    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        if len(self.line_vals) != len(self.line_names):
            raise DSLCallError(
                f"a benchmark has {len(self.line_vals)} lines and {len(self.line_names)} names"
            )


@dataclass
class Report:
    """The times of one plot, which is `benchmark`. `rows` has one for each size: the values of
    `x_names`, then for each line the time, the least and the most of it; the last two are NaN where
    only a time was returned.
    """

    benchmark: Benchmark
    rows: list[list[Any]]

    @property
    def heads(self) -> list[str]:
        """The names of the columns."""
        names = [
            name + end for name in self.benchmark.line_names for end in ("", " least", " most")
        ]
        return [*self.benchmark.x_names, *names]

    def __str__(self) -> str:
        shown = [self.heads, *([_short(cell) for cell in row] for row in self.rows)]
        keep = [i for i in range(len(self.heads)) if any(row[i] != "nan" for row in shown[1:])]
        widths = [max(len(row[i]) for row in shown) for i in keep]
        lines = [
            "  ".join(row[i].rjust(width) for i, width in zip(keep, widths, strict=True))
            for row in shown
        ]
        return "\n".join([f"{self.benchmark.plot_name}:", *lines])

    def save(self, folder: str | Path) -> list[Path]:
        """Write to `folder` a table (.csv) and, where matplotlib is installed, a picture (.png);
        return the files.
        """
        import csv

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / f"{self.benchmark.plot_name}.csv"
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.heads, *self.rows])
        if importlib.util.find_spec("matplotlib") is None:
            return [table]
        picture = folder / f"{self.benchmark.plot_name}.png"
        figure = self.plot()
        figure.savefig(picture)
        return [table, picture]

    def plot(self, figure: Any = None) -> Any:
        """Return the plot, a figure of matplotlib: `figure`, such as one of pyplot, or a new one.
        Raises DSLCallError where matplotlib is missing.
        """
        if importlib.util.find_spec("matplotlib") is None:
            raise DSLCallError("plots are drawn by matplotlib", hint="pip install matplotlib")
        from matplotlib.figure import Figure

        about, figure = self.benchmark, figure or Figure(layout="constrained")
        axes = figure.subplots()
        count = len(about.x_names)
        x = [row[0] for row in self.rows]
        for i, name in enumerate(about.line_names):
            time, least, most = ([row[count + 3 * i + k] for row in self.rows] for k in range(3))
            colour, style = about.styles[i] if about.styles else (None, "-")
            axes.plot(x, time, label=name, color=colour, linestyle=style)
            if least and least[0] == least[0]:
                axes.fill_between(x, least, most, alpha=0.15, color=colour)
        axes.set_xlabel(about.xlabel or " = ".join(about.x_names))
        axes.set_ylabel(about.ylabel)
        axes.set_xscale("log" if about.x_log else "linear")
        axes.set_yscale("log" if about.y_log else "linear")
        axes.set_title(about.plot_name)
        axes.legend()
        return figure

    def show(self) -> None:
        """Show the plot in a window or notebook; DSLCallError where matplotlib is missing."""
        if importlib.util.find_spec("matplotlib") is None:
            self.plot()  # the error
        from matplotlib import pyplot

        self.plot(pyplot.figure(layout="constrained"))
        pyplot.show()


def _short(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


class Mark:
    """A `function` to be timed, and the plots of it, `benchmarks`."""

    def __init__(self, function: Callable[..., Any], benchmarks: Sequence[Benchmark]) -> None:
        self.fn = function
        self.benchmarks = list(benchmarks)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        **kwargs: Any,
    ) -> list[Report]:
        """Time every size and line; `kwargs` are further arguments of each call. Returns a report
        for each plot. `print_data` prints tables, `save_path` is a folder for files, `show_plots`
        shows the plots in a window or notebook.
        """
        reports = [Report(one, self._rows(one, kwargs)) for one in self.benchmarks]
        for report in reports:
            if print_data:
                print(report)
            if save_path:
                report.save(save_path)
            if show_plots:
                report.show()
        return reports

    def _rows(self, about: Benchmark, kwargs: dict[str, Any]) -> list[list[Any]]:
        rows = []
        for x in about.x_vals:
            values = tuple(x) if isinstance(x, tuple | list) else (x,) * len(about.x_names)
            if len(values) != len(about.x_names):
                raise DSLCallError(
                    f"{x!r} sets {len(values)} arguments, and x_names has {len(about.x_names)}"
                )
            row: list[Any] = list(values)
            given = dict(zip(about.x_names, values, strict=True))
            for line in about.line_vals:
                found = self.fn(**given, **{about.line_arg: line}, **about.args, **kwargs)
                row += _three(found)
            rows.append(row)
        return rows


def _three(found: Any) -> tuple[float, float, float]:
    """Return a time, and the least and the most of it, from what the function returned."""
    if isinstance(found, tuple | list):
        if len(found) != 3:
            raise DSLCallError(
                f"a benchmark returns a time, or (time, least, most), not {len(found)} numbers",
                hint="benchmark(f, quantiles=(0.5, 0.2, 0.8)) returns three",
            )
        return float(found[0]), float(found[1]), float(found[2])
    return float(found), _NAN, _NAN


@explains_arguments
def perf_report(
    benchmarks: Benchmark | Sequence[Benchmark],
) -> Callable[[Callable[..., Any]], Mark]:
    """Decorate a function that times one size of one variant, and returns the time or, as
    `benchmark(..., quantiles=(0.5, 0.2, 0.8))` does, (time, least, most). `benchmarks` is the plot
    of its times, or several; `run` of the result draws them.

        @testing.perf_report(testing.Benchmark(
            x_names=["n"], x_vals=[2**i for i in range(10, 20)],
            line_arg="provider", line_vals=["ours", "numpy"], line_names=["ours", "NumPy"],
            plot_name="vector-add", ylabel="microseconds", x_log=True,
        ))
        def bench(n, provider):
            ...
            return testing.benchmark(call, quantiles=(0.5, 0.2, 0.8))

        bench.run(print_data=True, save_path="results")
    """
    plots = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
    return lambda function: Mark(function, plots)
