import threading

import basedsl_toy as toy

lock = threading.Lock()


@toy.jit
def guarded(n: toy.Int64):
    if n > 0:
        lock.acquire()
        n = n + 1
        lock.release()
    return n


guarded(3)
