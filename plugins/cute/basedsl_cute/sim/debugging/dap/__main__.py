"""The command line of the debug adapter: on stdin and stdout, or on a socket with `--listen`."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys

from basedsl_cute.sim.debugging.dap.adapter import Adapter


def main() -> int:
    """Serve one editor; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m basedsl_cute.sim.debugging.dap",
        description="The debugger of kernels, over the Debug Adapter Protocol.",
    )
    parser.add_argument(
        "--listen",
        metavar="[HOST:]PORT",
        help="wait for one editor on a TCP port (0: any; stderr says which), not on stdin",
    )
    parser.add_argument(
        "--any-network",
        action="store_true",
        help="let HOST be other than this machine's loopback: who connects may run any program",
    )
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="if launch names none")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS")
    parsed = parser.parse_args()
    program = (parsed.program, parsed.arguments)
    if parsed.listen is None:
        return Adapter(sys.stdin.buffer, sys.stdout.buffer, *program).serve()
    host, _, port = parsed.listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit():
        parser.error(f"--listen takes [HOST:]PORT, not {parsed.listen}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM)[0][4]
        if not ipaddress.ip_address(address[0]).is_loopback and not parsed.any_network:
            parser.error(f"{host} is not a loopback address; --any-network allows it")
        with socket.create_server((str(address[0]), int(port)), family=family) as server:
            name = server.getsockname()
            print(f"listening on {name[0]}:{name[1]}", file=sys.stderr, flush=True)
            connection, _ = server.accept()
    except (OSError, OverflowError) as error:  # the second for a port beyond the last
        parser.error(f"cannot listen on {parsed.listen}: {error}")
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
        return Adapter(source, sink, *program).serve()


if __name__ == "__main__":
    sys.exit(main())
