"""Frames that stand between a program and what it calls are not the program's."""

from basedsl.location import user_frames


def test_frames_of_frameworks_that_wrap_calls_are_no_users():
    found = {}
    code = compile(
        "def wrap(call):\n return call()\n", "/x/site-packages/torch/_dynamo/e.py", "exec"
    )
    exec(code, found)

    def innermost():
        return [frame.f_code.co_name for frame in user_frames()]

    names = found["wrap"](innermost)
    assert "wrap" not in names
    assert "test_frames_of_frameworks_that_wrap_calls_are_no_users" in names
