"""An editor for tests: it starts the debug adapter, sends it requests and reads what comes."""

import subprocess
import sys
import threading

from basedsl_cute.sim.debugging.dap.messages import Sender, read_message

SAFETY = 60  # seconds, after which a test that hangs fails


class Editor:
    """One connection to a debug adapter, by default to one started on pipes."""

    def __init__(self, source=None, sink=None):
        self.process = None
        if source is None:
            command = [sys.executable, "-m", "basedsl_cute.sim.debugging.dap"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            source, sink = self.process.stdout, self.process.stdin
            self.timer = threading.Timer(SAFETY, self.process.kill)
            self.timer.start()
        self.source, self.sender = source, Sender(sink)
        self.events = []
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.timer.cancel()

    def _read(self):
        message = read_message(self.source)
        assert message is not None, f"the adapter has ended, after {self.events}"
        return message

    def request(self, command, **arguments):
        """Send a request, and return its response; events that come before are kept."""
        self.sent += 1
        self.sender.send({"type": "request", "command": command, "arguments": arguments})
        while (message := self._read())["type"] != "response":
            self.events.append(message)
        assert (message["command"], message["request_seq"]) == (command, self.sent)
        return message

    def ask(self, command, **arguments):
        """The body of the response to a request that must be fulfilled."""
        answer = self.request(command, **arguments)
        assert answer["success"], answer
        return answer["body"]

    def refused(self, command, **arguments):
        """The message of the response to a request that must fail."""
        answer = self.request(command, **arguments)
        assert not answer["success"], answer
        assert answer["body"]["error"]["variables"]["text"] == answer["message"]
        return answer["message"]

    def wait_for(self, event):
        """The body of the next event of a name; others stay."""
        for i, message in enumerate(self.events):
            if message["event"] == event:
                return self.events.pop(i)["body"]
        while True:
            message = self._read()
            if message["event"] == event:
                return message["body"]
            self.events.append(message)

    def output(self, category):
        """The text that the program has printed, as far as it has come."""
        outputs = [one["body"] for one in self.events if one["event"] == "output"]
        return "".join(one["output"] for one in outputs if one["category"] == category)
