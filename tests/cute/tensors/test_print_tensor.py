"""print_tensor: every element, on the device."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def show_kernel(a: cute.Tensor, verbose: cute.Constexpr, vector: cute.Constexpr):
    cute.print_tensor(a.load() if vector else a, verbose=verbose)


@cute.jit
def show(a: cute.Tensor, verbose: cute.Constexpr, vector: cute.Constexpr):
    show_kernel(a, verbose, vector).launch(grid=(1, 1, 1), block=(1, 1, 1))


def printed(capfd, a, verbose=False, vector=False):
    show(a, verbose, vector)
    return capfd.readouterr().out


DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(sim, capfd, dtype):
    x = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    out = printed(capfd, from_dlpack(x))
    numbers = [[float(w) for w in line.split()] for line in out.splitlines()[1:]]
    np.testing.assert_array_equal(numbers, x.astype("f8"))
    assert out.startswith("tensor<ptr<")
    assert "o (2,3):(3,1)>:" in out.splitlines()[0]


def test_narrow_floats(sim, capfd):
    import ml_dtypes

    t = from_dlpack(np.array([1.5, -0.5], ml_dtypes.float8_e5m2))
    assert printed(capfd, t).splitlines()[1:] == ["  1.500000", "  -0.500000"]


def test_dynamic_shapes_print_their_layout(sim, capfd):
    x = np.arange(6, dtype="i4").reshape(2, 3)
    assert printed(capfd, x) == (
        "tensor<ptr<Int32, gmem, align<16>> o (2,3):(3,1)>:\n  0 1 2 \n  3 4 5 \n"
    )


def test_three_modes_and_long_rows(sim, capfd):
    x = np.arange(2 * 3 * 2, dtype="i4").reshape(2, 3, 2)
    lines = printed(capfd, from_dlpack(x)).splitlines()[1:]
    assert lines == [" (_,_,0):", "  0 2 4", "  6 8 10", " (_,_,1):", "  1 3 5", "  7 9 11"]
    y = np.arange(100, dtype="i4")
    assert printed(capfd, from_dlpack(y)).split()[-100:] == [str(i) for i in range(100)]


def test_vectors_and_coordinates(sim, capfd):
    x = np.arange(4, dtype="i4").reshape(2, 2)
    out = printed(capfd, from_dlpack(x), verbose=True, vector=True)
    assert out == ("vector<Int32 o (2,2)>:\n  (0,0) = 0\n  (0,1) = 1\n  (1,0) = 2\n  (1,1) = 3\n")


@cute.kernel
def printf_kernel(a: cute.Tensor):
    x = a.load()
    cute.printf("{} and {}\n", x, x.to(cute.Int32) + 1)
    cute.printf(a)


@cute.jit
def through_printf(a: cute.Tensor):
    printf_kernel(a).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_printf_of_vectors_and_tensors(sim, capfd):
    through_printf(from_dlpack(np.array([1.5, 2.5], "f4")))
    assert capfd.readouterr().out == (
        "[1.500000, 2.500000] and [2, 3]\ntensor<ptr<Float32, gmem, align<4>> o (2):(1)>\n"
    )


def test_what_is_no_tensor(sim):
    @cute.jit
    def wrong():
        cute.print_tensor(3)

    with pytest.raises(Exception, match="takes a tensor"):
        wrong()


@cute.kernel
def formats_kernel(a: cute.Tensor, n: cute.Int32, wide: cute.Int64):
    cute.printf("a %d %5.2f %x %s", n, a[0], 255, "text")
    cute.printf("b %d %lld %d", wide, n, n)
    cute.printf("c {} {:6.3f} {:04d} {:x} {{}} 100%", n, a[1], n, wide)
    cute.printf("d {} {}", a, a.layout)
    cute.printf("e {} {}", (1, (n, 2)), cute.make_swizzle(2, 3, 3))
    swizzle = cute.make_swizzle(1, 2, 3)
    cute.printf("f {}", cute.make_composed_layout(swizzle, 0, cute.make_layout((8, n))))
    cute.printf("g %s %s\n", a[1], cute.make_layout((2, n)))
    cute.printf("h 100% {} 100%% %d", n)
    cute.printf("i 100%% %d", n)
    cute.printf("j 100%%")


@cute.jit
def formats(a: cute.Tensor, n: cute.Int32, wide: cute.Int64):
    formats_kernel(a, n, wide).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_formats(target, capfd):
    formats(np.array([1.5, 2.25, 3], "f4"), 5, 2**40 + 1)
    cute.synchronize()
    assert capfd.readouterr().out.splitlines() == [
        "a 5  1.50 ff text",
        "b 1099511627777 5 5",
        "c 5  2.250 0005 10000000001 {} 100%",
        "d tensor<ptr<Float32, gmem, align<16>> o (3):(1)> (3):(1)",
        "e (1,(5,2)) S<2,3,3>",
        "f S<1,2,3> o 0 o (8,5):(1,8)",
        "g 2.250000 (2,5):(1,2)",
        "h 100% 5 100%% %d",
        "i 100% 5",
        "j 100%",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cute.printf("{} {}", 1), "2 places"),
        (lambda: cute.printf("{0}{}", 1), "in their order"),
        (lambda: cute.printf("{:>8}{}", 1, 1), "cannot show"),
        (lambda: cute.printf("%d", 1.5), "use %f"),
        (lambda: cute.printf("%d %d", 1), "2 conversion"),
    ],
)
def test_wrong_formats(sim, call, message):
    @cute.kernel
    def kernel():
        call()

    @cute.jit
    def host():
        kernel().launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises(Exception, match=message):
        host()


@cute.jit
def prints_while_compiling(a: cute.Tensor, n: cute.Int32):
    print(a.shape, (n, (2, "x")), [n], (n,), a.layout)


def test_print_shows_what_is_dynamic(sim, capsys):
    cute.compile(prints_while_compiling, np.zeros((2, 3), "f4"), 1)
    assert capsys.readouterr().out == "(?, ?) (?, (2, 'x')) [?] (?,) (?,?):(?,1)\n"


@cute.kernel
def prints_a_value_kernel(x: cute.Tensor):
    for i in cute.range_constexpr(3):
        print(i, x[i])
    print("known", 3)


@cute.jit
def prints_a_value(x: cute.Tensor):
    prints_a_value_kernel(x).launch(grid=1, block=1)


def test_print_of_a_dynamic_value_says_once_what_prints_it(sim, capsys, caplog):
    cute.compile(prints_a_value, np.zeros(3, "f4"))
    assert capsys.readouterr().out == "0 ?\n1 ?\n2 ?\nknown 3\n"
    (remark,) = [one.getMessage() for one in caplog.records if one.name == "basedsl.remarks"]
    assert 'cute.printf("{}", x) prints it at run time' in remark
    assert "print(i, x[i])" in remark
