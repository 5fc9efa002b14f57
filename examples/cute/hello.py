"""The smallest kernel: one thread says hello.

python examples/cute/hello.py
"""

import basedsl_cute as cute


@cute.kernel
def kernel():
    tidx, _, _ = cute.arch.thread_idx()
    if tidx == 0:
        cute.printf("Hello world")


@cute.jit
def host():
    kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))


if __name__ == "__main__":
    host()
    cute.synchronize()
