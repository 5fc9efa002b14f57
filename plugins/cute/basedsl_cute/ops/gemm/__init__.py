"""`matmul`: which kernel takes a product, with which configuration, and how arrays get there."""
