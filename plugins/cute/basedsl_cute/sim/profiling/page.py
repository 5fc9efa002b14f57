"""The page of a profile: the source of each kernel with what its lines cost, as one HTML file.

Nothing is loaded from the network; colours follow the reader's setting, light or dark.
"""

from __future__ import annotations

import html
import linecache

from basedsl_cute.sim.profiling.result import Counts, KernelProfile, LineProfile

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --soft: #f2f4f7;
  --line: #d5dae1; --quiet: #667080; --bar: #3b7dd8; --warn: #b4540a; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --back: #14171c; --soft: #1e232b;
  --line: #343c48; --quiet: #93a0b3; --bar: #6aa5f0; --warn: #f0a35e; } }
body { margin: 2rem; color: var(--text); background: var(--back); font: 15px/1.5 system-ui,
  sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
p, li { max-width: 60rem; } .quiet { color: var(--quiet); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font: 13px/1.45 ui-monospace, monospace; }
th, td { padding: 1px 10px; text-align: right; white-space: pre; }
th { position: sticky; top: 0; background: var(--soft); border-bottom: 1px solid var(--line);
  font-weight: 600; }
td.code, th.code { text-align: left; } td.no { color: var(--quiet); }
tr.busy td { background: var(--soft); } tr.sum td { border-top: 1px solid var(--line); }
.warn { color: var(--warn); font-weight: 600; }
.bar { display: inline-block; height: 0.7em; background: var(--bar); border-radius: 2px; }
figure { margin: 1rem 0; } svg text { fill: var(--text); font: 12px system-ui, sans-serif; }
"""

_HEAD = (
    "line", "", "instructions", "lanes", "diverged", "sectors", "x ideal", "bank conflicts",
    "barriers", "TMA bytes", "tensor flop",
)  # fmt: skip
_AROUND = 2  # lines of source before the first and after the last that do something


def page(kernels: list[KernelProfile], predictions: list[str], figure: str) -> str:
    """The page as text, with predictions and a picture above the kernels."""
    parts = [f"<pre>{html.escape(one)}</pre>" for one in predictions]
    parts += [f"<figure>{figure}</figure>"] if figure else []
    parts += [_kernel(one) for one in kernels]
    title = ", ".join(dict.fromkeys(one.name for one in kernels)) or "no kernels"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Profile of {html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Profile of {html.escape(title)}</h1>"
        '<p class="quiet">Counted on the simulator. Instructions are of warps; sectors are 32 '
        "bytes of global memory, and ideal are the fewest that hold the same bytes; a bank "
        f"conflict is a further pass over shared memory.</p>{''.join(parts)}</body></html>\n"
    )


def _kernel(kernel: KernelProfile) -> str:
    total = kernel.total
    facts = [
        f"grid {kernel.grid}, block {kernel.block}, cluster {kernel.cluster}; {kernel.shared} "
        f"bytes of shared memory; {kernel.blocks} blocks simulated",
        str(kernel.occupancy),
        ", ".join(
            f"{number:.0f} {kind}"
            for kind, number in sorted(total.instructions.items(), key=lambda pair: -pair[1])
        ),
    ]
    if kernel.registers is not None:
        facts.insert(1, f"{kernel.registers} registers, {kernel.spilled} bytes spilled")
    items = "".join(f"<li>{html.escape(fact)}</li>" for fact in facts)
    head = "".join(f"<th>{name}</th>" for name in _HEAD) + '<th class="code">source</th>'
    files = dict.fromkeys(line.file for line in kernel.lines)
    tables = "".join(_file(kernel, file, head) for file in files)
    return f"<h2>{html.escape(kernel.name)}</h2><ul>{items}</ul>{tables}"


def _file(kernel: KernelProfile, file: str, head: str) -> str:
    found = {line.line: line for line in kernel.lines if line.file == file}
    source = linecache.getlines(file)
    first = max(min(found) - _AROUND, 1)
    last = min(max(found) + _AROUND, max(len(source), max(found)))
    rows = []
    for number in range(first, last + 1):
        text = source[number - 1].rstrip("\n") if number <= len(source) else ""
        rows.append(_row(number, text, found.get(number), kernel.total))
    sums = "".join(f"<td>{cell}</td>" for cell in _cells(kernel.total, kernel.total))
    rows.append(f'<tr class="sum"><td>sum</td>{sums}<td class="code"></td></tr>')
    return (
        f'<p class="quiet">{html.escape(file)}</p><div class="scroll"><table><thead><tr>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(number: int, text: str, line: LineProfile | None, total: Counts) -> str:
    code = f'<td class="code">{html.escape(text)}</td>'
    if line is None:
        blank = "<td></td>" * (len(_HEAD) - 1)
        return f'<tr><td class="no">{number}</td>{blank}{code}</tr>'
    cells = "".join(f"<td>{cell}</td>" for cell in _cells(line, total))
    return f'<tr class="busy"><td class="no">{number}</td>{cells}{code}</tr>'


def _cells(one: Counts, total: Counts) -> list[str]:
    share = one.executed / total.executed if total.executed else 0
    bar = f'<span class="bar" style="width:{60 * share:.0f}px"></span>'
    excess = one.sectors / one.ideal_sectors if one.ideal_sectors else 0
    return [
        bar,
        f"{one.executed:.0f}",
        f"{one.active_lanes:.1f}",
        _warned(f"{one.diverged_branches}", one.diverged_branches > 0) if one.branches else "",
        f"{one.sectors}" if one.sectors else "",
        _warned(f"{excess:.2f}", excess > 1.5) if excess else "",
        _warned(f"{one.bank_conflicts}", one.bank_conflicts > 0) if _shared(one) else "",
        f"{one.barriers}" if one.barriers else "",
        f"{one.tma_bytes}" if one.tma_bytes else "",
        f"{one.tensor_flops:.3g}" if one.tensor_flops else "",
    ]


def _shared(one: Counts) -> int:
    return one.load_wavefronts + one.store_wavefronts


def _warned(text: str, bad: bool) -> str:
    return f'<span class="warn">{text}</span>' if bad else text
