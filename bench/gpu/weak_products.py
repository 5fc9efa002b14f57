"""Products whose measured ratio to cuBLAS was below 1, and the configurations to try for each.

What cuBLAS runs for them is known by its kernels' names (tile, stages, cluster). A tile whose
columns are a multiple of 16 and not of 64 has narrow pieces of C in shared memory, and so room for
another stage of A and B: `staged` counts what a piece really takes.
"""

SHARED_MEMORY = 227 * 1024

# dtype, contiguous modes of A and B, batches, M, N, K, see shapes.py
SHORT = [
    ("float16", "kk", 1, 1000, 1000, 1000),
    ("float16", "kn", 1, 512, 1536, 3072),
    ("float16", "kk", 1, 1536, 1536, 8192),
    ("float16", "mn", 1, 768, 2048, 8192),
    ("float16", "kk", 1, 128, 50304, 1536),
    ("float16", "kn", 1, 512, 512, 65536),
    ("float16", "kk", 1, 256, 21504, 7168),
]


def staged(rows, columns, consumers, pingpong=False, cluster=(1, 1), bytes_of_c=2, **options):
    """A configuration of the persistent kernel with as many stages as fit, up to 10."""
    from basedsl_cute.ops.hopper.config import Config

    options = {
        "along_m": pingpong,
        "deferred": not (pingpong or options.get("whole")),
        "slots": 2,
    } | options
    most = 128 // bytes_of_c
    piece = max(n for n in (8, 16, 32, 64) if n <= most and columns % n == 0)
    if options.get("whole"):
        options["slots"] = rows // (64 * (1 if pingpong else consumers)) * (columns // piece)
    slots = options["slots"] * consumers * 64 * piece * bytes_of_c
    stages = (SHARED_MEMORY - 2048 - slots) // ((rows + columns) * 128)
    return Config((rows, columns, 64), min(10, stages), consumers, pingpong, cluster, **options)


def split(rows, columns, parts=1, blocks=1, swap=False, sharing=1, stages=16):
    """A configuration of the kernel for few rows, with as many stages as fit, up to `stages`."""
    from basedsl_cute.ops.hopper.split_k_gemm import Config

    stages = min(stages, (SHARED_MEMORY // blocks - 3072) // ((rows + columns) * 128))
    tile = (rows, columns, 64)
    return Config(tile, stages, rows // 64, parts, swap, sharing=sharing, blocks_per_sm=blocks)


def parts_of(*fields):
    """A configuration of the kernel that adds up slices of K from memory."""
    from basedsl_cute.ops.hopper import parallel_split_k

    return parallel_split_k.Config(*fields)


def of_1000():
    """cuBLAS: 72 x 128, 8 stages, cluster 2 x 4, of C^T. A piece of 72 columns has 8 of them."""
    return [
        *(staged(128, 72, 2, cluster=c) for c in ((4, 2), (2, 2))),
        *(staged(128, 72, 2, cluster=c, whole=True) for c in ((4, 2), (2, 2), (1, 2))),
        *(staged(128, 64, 2, cluster=(1, 2), **o) for o in ({"slots": 1}, {"whole": True})),
        staged(64, 128, 2, True, (2, 1)),
        *(staged(64, 128, 1, False, c, whole=True) for c in ((2, 1), (2, 2), (4, 1))),
        *(staged(64, 128, 2, True, c, whole=True) for c in ((2, 1), (2, 2))),
        staged(128, 80, 2, cluster=(2, 1), whole=True),
    ]


def of_1536_columns():
    """cuBLAS: 96 x 64, 8 stages, cluster 1 x 2. Of B, where N is contiguous, 96 columns are loaded
    in pieces of 64 bytes, and 64 in pieces of 128.
    """
    return [
        *(staged(128, 64, 2, p, c) for p in (True, False) for c in ((2, 1), (2, 2), (4, 1))),
        staged(128, 64, 2, cluster=(2, 1), whole=True),
        staged(128, 64, 2, cluster=(4, 2)),
        *(staged(64, 128, 1, False, c, whole=True) for c in ((2, 1), (4, 1))),
        *(split(128, 64, sharing=n) for n in (2, 4)),
        split(128, 128, 2),
        split(64, 192, 2),
    ]


def of_1536():
    """cuBLAS: 144 x 128, 6 stages, cluster 1 x 2, of C^T: 132 tiles. Six stages fit here too."""
    return [
        *(staged(128, 144, 2, cluster=(2, 1), **o) for o in ({}, {"slots": 1}, {"swizzle": 2})),
        staged(128, 144, 2, cluster=(2, 1), along_m=True),
        staged(128, 144, 2, cluster=(2, 1), slots=1, swizzle=4, along_m=True),
        *(staged(192, 96, 3, cluster=c) for c in ((1, 2), (2, 1))),
        staged(192, 96, 3, cluster=(1, 2), along_m=True),
        staged(192, 96, 3, cluster=(1, 2), slots=1),
    ]


def of_2048_columns():
    """cuBLAS: 96 x 128, 6 stages, cluster 2 x 1, of C^T: 132 tiles."""
    return [
        *(staged(192, 64, 3, cluster=(1, 2), slots=n) for n in (1, 2)),
        staged(192, 64, 3, cluster=(1, 2), slots=1, along_m=True),
        staged(192, 64, 3, cluster=(2, 1), slots=1),
        staged(128, 128, 2, cluster=(2, 2)),
        *(
            parts_of(2, staged(128, 192, 2, cluster=c, bytes_of_c=4, deferred=False), n)
            for c in ((2, 1), (1, 2))
            for n in (1, 2)
        ),
        split(128, 192, 2),
        parts_of(4, split(128, 256, 2), 2),
    ]


def of_50304_columns():
    """cuBLAS: 192 x 128, 5 stages, cluster 2 x 1, of C^T. Rounds of 132 tiles that are nearly full:
    2 of 192 columns, 3 of 128, 4 of 96.
    """
    return [
        *(staged(128, 192, 2, cluster=c, slots=1) for c in ((1, 2), (1, 1))),
        staged(128, 192, 2, cluster=(1, 2)),
        *(staged(128, n, 2, cluster=(1, 2)) for n in (96, 112, 128)),
        *(staged(128, n, 2, True, (1, 2)) for n in (96, 128)),
        *(staged(128, n, 2) for n in (112, 128)),
        *(split(192, 128, swap=True, sharing=n) for n in (1, 2)),
    ]


def of_65536():
    """cuBLAS: 128 x 128, 6 stages, cluster 2 x 1, K in parts, which a kernel adds up. Partial sums
    are 16.8 MB, written and read, for 16 parts; half as many where pairs add theirs first. A
    cluster of more than two blocks leaves some multiprocessors idle.
    """
    wide = staged(128, 256, 2, cluster=(2, 1), bytes_of_c=4, deferred=False)
    tall = staged(256, 128, 2, cluster=(1, 2), bytes_of_c=4, deferred=False)
    return [
        *(parts_of(16, wide, n) for n in (2, 4, 8)),
        *(parts_of(16, tall, n) for n in (2, 4)),
        *(parts_of(8, split(128, 256, 2), n) for n in (2, 4)),
        parts_of(8, split(256, 128, 2), 2),
        parts_of(8, staged(128, 128, 2, cluster=(2, 1), bytes_of_c=4, deferred=False), 2),
        parts_of(8, split(128, 128, sharing=2), 2),
    ]


def of_21504_columns():
    """cuBLAS: 168 x 128, 5 stages, cluster 1 x 2, of C^T. 128 tiles of 256 x 168 are one round."""
    return [
        *(staged(256, 168, 2, cluster=c, deferred=False) for c in ((1, 2), (1, 1))),
        staged(256, 168, 2, cluster=(1, 2), deferred=False, slots=4),
        staged(256, 176, 2, cluster=(1, 2), deferred=False),
        *(staged(128, 112, 2, p, (2, 1)) for p in (True, False)),
        staged(128, 112, 2, True, (2, 1), slots=1),
        *(staged(128, 168, 2, cluster=c) for c in ((2, 1), (1, 2))),
        staged(128, 176, 2, cluster=(2, 1)),
        staged(128, 192, 2, cluster=(2, 1), slots=1),
    ]


WEAK_KERNELS = {
    (1000, 1000, 1000): of_1000,
    (512, 1536, 3072): of_1536_columns,
    (1536, 1536, 8192): of_1536,
    (768, 2048, 8192): of_2048_columns,
    (128, 50304, 1536): of_50304_columns,
    (512, 512, 65536): of_65536,
    (256, 21504, 7168): of_21504_columns,
}
