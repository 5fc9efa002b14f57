import basedsl_cute as cute


def tile_of(layout):
    return cute.logical_divide(layout, cute.make_layout(5))


@cute.jit
def host(n: cute.Int32):
    tile = tile_of(cute.make_layout((4, 6), stride=(6, 2)))
    return n + cute.size(tile)


host(1)
