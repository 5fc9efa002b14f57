"""The tiled matrix product of the examples, 16 x 16 x 16; `starts.py` runs it."""

import numpy as np
from arrays import array, first_call
from tiled_matmul import matmul

a = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)
first_call(matmul, array(a), array(a), array(np.empty_like(a)))
