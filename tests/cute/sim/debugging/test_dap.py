"""The debug adapter: editors that send scripted requests, to a process of its own each."""

import io
import json
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from basedsl_cute.sim.debugging.dap.hit_count import hit_count
from basedsl_cute.sim.debugging.dap.messages import ProtocolError, Sender, read_message
from basedsl_cute.sim.debugging.dap.shown_values import ShownValues
from basedsl_cute.sim.debugging.dap.source_lines import NOT_A_KERNEL, PERHAPS, SourceLines
from tests.cute.sim.debugging.dap_client import SAFETY, Editor

PROGRAM = str(Path(__file__).with_name("dap_program.py"))
SOURCE = {"path": PROGRAM}


def line_of(text):
    lines = Path(PROGRAM).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


LOOP, BODY = line_of("for i in range"), line_of("total = total")


def launched(editor, breakpoints, **options):
    """Launch the program with these breakpoints; returns the answers to them."""
    editor.ask("initialize", adapterID="basedsl")
    editor.ask("launch", program=PROGRAM, **options)
    editor.wait_for("initialized")
    answers = editor.ask("setBreakpoints", source=SOURCE, breakpoints=breakpoints)["breakpoints"]
    editor.ask("configurationDone")
    return answers


def frame_of(editor, thread):
    """The number of the innermost frame of a thread, and the lines and names of all."""
    frames = editor.ask("stackTrace", threadId=thread)["stackFrames"]
    assert {frame["source"]["path"] for frame in frames} == {PROGRAM}
    return frames[0]["id"], [(frame["name"], frame["line"]) for frame in frames]


def locals_of(editor, frame):
    scopes = editor.ask("scopes", frameId=frame)["scopes"]
    assert [one["name"] for one in scopes] == ["Locals", "Thread"]
    found = editor.ask("variables", variablesReference=scopes[0]["variablesReference"])
    return {one["name"]: one for one in found["variables"]}


def finish(editor):
    """Let the program run to its end without a stop."""
    editor.ask("setBreakpoints", source=SOURCE, breakpoints=[])
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited") == {"exitCode": 3}
    editor.wait_for("terminated")
    assert editor.output("stdout").endswith("right\n")


def test_a_session():
    with Editor() as editor:
        assert editor.refused("threads") == "no program runs"
        condition = {"line": BODY, "condition": "thread == 37 and i > 4"}
        helper = {"line": line_of("result = value")}
        wanted = [condition, helper, {"line": line_of("begins")}, {"line": 1}]
        env = {"WORD": "there"}
        answers = launched(editor, wanted, args=["here"], env=env)
        assert [one["verified"] for one in answers] == [True, False, False, False]
        assert answers[3]["message"] == NOT_A_KERNEL

        stopped = editor.wait_for("stopped")
        assert stopped["reason"] == "breakpoint"
        assert stopped["hitBreakpointIds"] == [answers[0]["id"]]
        assert (stopped["threadId"], stopped["allThreadsStopped"]) == (38, True)
        threads = editor.ask("threads")["threads"]
        assert [one["id"] for one in threads] == list(range(33, 65))
        assert threads[5]["name"] == "thread (37, 0, 0) of block (0, 0, 0)"
        frame, frames = frame_of(editor, 38)
        assert frames == [("sums_kernel", BODY)]
        known = locals_of(editor, frame)
        assert set(known) == {"i", "thread", "total", "x", "y"}
        assert (known["i"]["value"], known["total"]["value"]) == ("5", "10")
        rows = editor.ask("variables", variablesReference=known["x"]["variablesReference"])
        row = rows["variables"][1]
        assert (len(rows["variables"]), row["name"], row["type"]) == (8, "[1]", "float32")
        assert row["value"] == "float32 (8,) [ 8. 9. 10. 11. 12. 13. 14. 15.]"
        column = {"variablesReference": row["variablesReference"], "start": 2, "count": 1}
        assert editor.ask("variables", **column)["variables"][0]["value"] == "10"

        other, _ = frame_of(editor, 36)
        assert editor.ask("evaluate", expression="thread * 2", frameId=other)["result"] == "70"
        assert editor.ask("evaluate", expression="x[0, i] + total")["result"] == "15"
        assert editor.refused("evaluate", expression="nothing").startswith("NameError: name 'noth")
        assert editor.refused("stackTrace", threadId=1000).startswith("there is no thread 1000")
        assert editor.refused("readMemory") == "this adapter has no request 'readMemory'"

        editor.ask("setBreakpoints", source=SOURCE, breakpoints=[helper])
        editor.ask("continue", threadId=38)
        editor.wait_for("continued")
        told = editor.wait_for("breakpoint")
        assert told["breakpoint"]["verified"] and told["breakpoint"]["line"] == helper["line"]
        assert editor.wait_for("stopped")["threadId"] == 38
        assert editor.refused("scopes", frameId=frame + 7) == "this frame was one of another stop"
        frame, frames = frame_of(editor, 38)
        outer = ("sums_kernel", line_of("square = squared"))
        assert frames == [("squared", helper["line"]), outer]
        assert set(locals_of(editor, frame)) == {"value"}
        assert (
            editor.ask("evaluate", expression="value == total", frameId=frame)["result"] == "True"
        )
        editor.ask("stepOut", threadId=38)
        assert editor.wait_for("stopped")["reason"] == "step"
        assert frame_of(editor, 38)[1] == [("sums_kernel", line_of("y[thread] = square"))]
        finish(editor)
        assert editor.output("stdout") == "begins here there\nright\n"
        assert editor.output("stderr") == "to stderr\n"
        assert editor.refused("threads") == "no program runs"
        editor.ask("disconnect")
        assert editor.process.wait() == 0


@pytest.mark.slow
def test_steps_and_hit_counts():
    with Editor() as editor:
        launched(editor, [{"line": BODY, "condition": "thread == 40", "hitCondition": ">= 7"}])
        assert editor.wait_for("stopped")["threadId"] == 41
        assert editor.ask("evaluate", expression="i")["result"] == "6"
        editor.ask("setBreakpoints", source=SOURCE, breakpoints=[{"line": line_of("square =")}])
        editor.ask("next", threadId=43)  # steps follow the thread that is looked at
        assert editor.wait_for("stopped")["threadId"] == 43
        assert editor.ask("evaluate", expression="i")["result"] == "7"
        editor.ask("continue", threadId=43)
        editor.wait_for("stopped")
        editor.ask("next", threadId=43)
        editor.wait_for("stopped")
        assert frame_of(editor, 43)[1] == [("sums_kernel", line_of("y[thread] = square"))]
        finish(editor)


@pytest.mark.slow
def test_stopping_on_entry_and_pausing():
    with Editor() as editor:
        launched(editor, [], stopOnEntry=True)
        assert editor.wait_for("stopped")["reason"] == "entry"
        assert frame_of(editor, 1)[1] == [("sums_kernel", line_of("thread = cute"))]
        editor.ask("setBreakpoints", source=SOURCE, breakpoints=[{"line": BODY}])
        for action in "continue", "stepIn":
            editor.ask(action, threadId=1)
            editor.wait_for("stopped")
        assert frame_of(editor, 1)[1] == [("sums_kernel", line_of("square = squared"))]
        editor.ask("stepIn", threadId=1)
        editor.wait_for("stopped")
        assert frame_of(editor, 1)[1][0] == ("squared", line_of("result = value"))
        finish(editor)


@pytest.mark.slow
def test_pausing_before_a_kernel_stops_at_its_first_line():
    with Editor() as editor:
        editor.ask("initialize", adapterID="basedsl")
        editor.ask("launch", program=PROGRAM)
        editor.wait_for("initialized")
        assert editor.ask("threads")["threads"][0]["name"] == "the program"
        editor.ask("pause", threadId=1)
        assert editor.refused("next", threadId=1) == "no kernel has stopped: the program runs"
        editor.ask("configurationDone")
        assert editor.wait_for("stopped")["reason"] == "pause"
        assert editor.request("disconnect")["success"]
        assert editor.wait_for("exited")["exitCode"] != 3  # it was ended


@pytest.mark.slow
def test_without_debugging_nothing_stops():
    with Editor() as editor:
        launched(editor, [{"line": BODY}], noDebug=True)
        assert editor.wait_for("exited") == {"exitCode": 3}
        assert editor.output("stdout").endswith("right\n")


def test_launches_that_cannot_be(tmp_path):
    (tmp_path / "wrong.py").write_text("def f():\n    1 / 0\n\n\nf()\n")
    with Editor() as editor:
        assert "attaches to none" in editor.refused("attach")
        assert editor.refused("initialize", linesStartAt1=False).endswith("counted from 1")
        assert editor.refused("launch").startswith("launch needs 'program'")
        assert editor.refused("launch", program="none.py", cwd=str(tmp_path)) == (
            f"program: there is no file {tmp_path / 'none.py'}"
        )
        wrong = {"program": "wrong.py", "cwd": str(tmp_path)}
        assert "internalConsole" in editor.refused("launch", **wrong, console="externalTerminal")
        assert "a list of strings" in editor.refused("launch", **wrong, args="a b")
        assert "none-such-python" in editor.refused("launch", **wrong, python="none-such-python")
        assert editor.refused("launch", **wrong, python="false").endswith("with status 1")


@pytest.mark.slow
def test_on_a_socket_the_program_fails_with_its_own_traceback(tmp_path):
    (tmp_path / "wrong.py").write_text("def f():\n    1 / 0\n\n\nf()\n")
    command = [sys.executable, "-m", "basedsl_cute.sim.debugging.dap", "--listen", "0"]
    with subprocess.Popen(
        [*command, str(tmp_path / "wrong.py")], stderr=subprocess.PIPE, text=True
    ) as process:
        safety = threading.Timer(SAFETY, process.kill)
        safety.start()
        address = process.stderr.readline().rpartition(" ")[2].strip()
        host, port = address.split(":")
        assert host == "127.0.0.1"
        with socket.create_connection((host, int(port)), timeout=SAFETY) as connection:
            editor = Editor(connection.makefile("rb"), connection.makefile("wb"))
            editor.ask("initialize", adapterID="basedsl")
            editor.ask("launch")
            editor.ask("configurationDone")
            assert editor.wait_for("exited") == {"exitCode": 1}
            told = editor.output("stderr")
            assert "ZeroDivisionError" in told and "debuggee" not in told
            editor.ask("disconnect")
        assert process.wait() == 0
        safety.cancel()


@pytest.mark.slow
def test_it_listens_on_loopback_only():
    command = [sys.executable, "-m", "basedsl_cute.sim.debugging.dap", "--listen"]
    for place, message in (("0.0.0.0:0", "is not a loopback address"), ("x", "takes [HOST:]PORT")):
        done = subprocess.run([*command, place], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr


# The parts ----------------------------------------------------------------------------------


def test_lines_of_kernels():
    lines = SourceLines(Path(PROGRAM).read_text())
    assert lines.place(BODY) == (BODY, None)
    assert lines.place(line_of("# every element")) == (LOOP, None)
    assert lines.place(line_of("@cute.kernel")) == (line_of("thread = cute"), None)
    assert lines.place(line_of("Sums of the")) == (line_of("thread = cute"), None)
    assert lines.place(line_of("result = value")).message == PERHAPS
    for text in "import numpy", "@cute.jit", 'if __name__ == "':
        assert lines.place(line_of(text)).message == NOT_A_KERNEL
    after = line_of("y[thread] = square") + 1
    assert lines.place(after) == (after, NOT_A_KERNEL)


def test_hit_counts():
    def hits(text):
        return [n for n in range(1, 10) if hit_count(text)(n)]

    assert hits("3") == hits("== 3") == [3]
    assert (hits("> 7"), hits(">=7"), hits("%4")) == ([8, 9], [7, 8, 9], [4, 8])
    assert (hits("<2"), hits("<= 2")) == ([1], [1, 2])
    for wrong in "", "many", "% 0", "=3", "3 4", "-1":
        with pytest.raises(ValueError, match="a hit count is a number"):
            hit_count(wrong)


def test_messages():
    stream = io.BytesIO()
    sender = Sender(stream)
    sender.event("output", output="é")
    sender.fail({"seq": 7, "command": "next"}, "{no}")
    stream.seek(0)
    assert read_message(stream) == {
        "type": "event", "event": "output", "body": {"output": "é"}, "seq": 1
    }  # fmt: skip
    assert read_message(stream)["request_seq"] == 7
    assert read_message(stream) is None
    for wrong in b"Content-Length: x\r\n\r\n", b"A: 1\r\n\r\n", b"Content-Length: 1\r\n\r\n{":
        with pytest.raises(ProtocolError):
            read_message(io.BytesIO(wrong))
    sender._stream.close()
    sender.event("dropped")  # the peer has gone


def test_values_with_parts():
    values = ShownValues()
    held = values.variable("pairs", [1, (2.5, "a")])
    assert (held["value"], held["indexedVariables"]) == ("[1, (2.5, 'a')]", 2)
    inner = values.variables(held["variablesReference"])[1]
    assert [one["value"] for one in values.variables(inner["variablesReference"])] == ["2.5", "'a'"]
    for unknown in 0, -1, 100:
        with pytest.raises(IndexError):
            values.variables(unknown)


def test_the_extension_names_what_launch_takes():
    folder = Path(__file__).parents[4] / "examples" / "vscode"
    manifest = json.loads((folder / "package.json").read_text())
    (debugger,) = manifest["contributes"]["debuggers"]
    assert (folder / debugger["program"]).is_file()
    names = {"program", "args", "env", "cwd", "python", "stopOnEntry", "justMyCode"}
    assert set(debugger["configurationAttributes"]["launch"]["properties"]) == names


def has_test_client():
    node = shutil.which("node")
    name = "@vscode/debugadapter-testsupport"
    found = node and subprocess.run([node, "-e", f"require('{name}')"], capture_output=True)
    return bool(found) and found.returncode == 0


@pytest.mark.slow
def test_the_client_of_vs_code():
    """`npm install @vscode/debugadapter-testsupport`, and its node_modules in NODE_PATH."""
    if not has_test_client():
        pytest.skip("there is no node, or no @vscode/debugadapter-testsupport")
    script = Path(__file__).with_name("vscode_client.cjs")
    ran = subprocess.run(
        ["node", str(script), sys.executable, PROGRAM, str(BODY)],
        capture_output=True, text=True, timeout=SAFETY,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    capabilities, stop, end = map(json.loads, ran.stdout.splitlines())
    assert "supportsConditionalBreakpoints" in capabilities["capabilities"]
    assert (stop["thread"], stop["threads"], stop["name"]) == (38, 32, "sums_kernel")
    assert (stop["i"], stop["total"], stop["variables"]["thread"]) == ("5", "10", "37")
    assert end["stdout"] == "begins code\nright\n"
