"""The roofline picture of predictions: operations in a second over operations per byte, as SVG.

The roof is what the GPU's memory and its units allow; a kernel is a point below it (Williams,
Waterman, Patterson: "Roofline: an insightful visual performance model", 2009).
"""

from __future__ import annotations

import html
import math

from basedsl_cute.sim.profiling.prediction import Prediction

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 320, 70, 40


def roofline(predictions: list[Prediction]) -> str:
    """The picture as an SVG element; "" if no kernel computes in floats and touches memory."""
    points = [p for p in predictions if p.flops and p.bytes]
    if not points:
        return ""
    peak = max(p.peak for p in points)
    memory = points[0].rates.memory
    intensities = [p.flops / p.bytes for p in points] + [peak / memory]
    speeds = [p.flops / p.seconds for p in points] + [peak]
    low, high = (
        math.floor(math.log10(min(intensities)) - 0.5),
        math.ceil(math.log10(max(intensities)) + 0.5),
    )
    bottom, top = math.floor(math.log10(min(speeds)) - 0.3), math.log10(peak) + 0.3

    def x(intensity: float) -> float:
        return _LEFT + (math.log10(intensity) - low) / (high - low) * (_WIDTH - _LEFT - 20)

    def y(speed: float) -> float:
        room = _HEIGHT - _BOTTOM - 15
        return _HEIGHT - _BOTTOM - (math.log10(speed) - bottom) / (top - bottom) * room

    ridge = peak / memory
    roof = [(10.0**low, 10.0**low * memory), (ridge, peak), (10.0**high, peak)]
    path = " ".join(f"{x(i):.1f},{y(max(s, 10.0**bottom)):.1f}" for i, s in roof)
    parts = [
        f'<polyline points="{path}" fill="none" stroke="var(--quiet)" stroke-width="2"/>',
        f'<text x="{x(ridge):.0f}" y="{y(peak) - 6:.0f}" text-anchor="end">'
        f"{peak / 1e12:.3g} TFLOP/s, {memory / 1e12:.3g} TB/s</text>",
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<text x="{at:.0f}" y="{_HEIGHT - 22}" text-anchor="middle">1e{power}</text>')
    for power in range(bottom, math.floor(top) + 1):
        at = y(10.0**power)
        parts.append(f'<text x="{_LEFT - 8}" y="{at:.0f}" text-anchor="end">1e{power}</text>')
    for p in points:
        px, py = x(p.flops / p.bytes), y(p.flops / p.seconds)
        name = html.escape(f"{p.kernel}: {p.flops / p.seconds / 1e12:.3g} TFLOP/s")
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="var(--bar)"/>')
        parts.append(f'<text x="{px + 9:.0f}" y="{py + 14:.0f}">{name}</text>')
    parts.append(
        f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">operations per byte of '
        "memory; upwards, operations in a second</text>"
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        f'aria-label="roofline">{"".join(parts)}</svg>'
    )
