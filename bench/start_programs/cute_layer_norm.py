"""The layer norm of the examples, 4 x 256; `starts.py` runs it."""

import numpy as np
from arrays import array, first_call
from normalization import layer_norm

x = np.linspace(-1, 1, 1024, dtype=np.float32).reshape(4, 256)
weight, bias, y = np.ones(256, np.float32), np.zeros(256, np.float32), np.empty_like(x)
first_call(layer_norm, *map(array, (x, weight, bias, y)), 1e-5, 256)
