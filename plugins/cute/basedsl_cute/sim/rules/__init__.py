"""Rules of the simulator by family of operations: the Python text that each operation becomes."""
