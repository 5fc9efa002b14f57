"""`cute.torch` and `utils.create_cute_tensor_for_fp8`, with PyTorch and the simulator."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import utils
from basedsl_cute.torch import (
    GaussianInitConfig,
    RandomInitConfig,
    ScalarInitConfig,
    TensorInitType,
    as_tensor,
    convert_cute_tensor,
    create_and_permute_torch_tensor,
    cute_tensor_like,
    dtype,
    get_leading_dim,
    matrix,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@cute.jit
def double(x: cute.Tensor):
    for i in range(cute.size(x)):
        x[i] = (x[i].to(cute.Float32) * 2).to(x.element_type)


@pytest.mark.parametrize("is_mode0_major", [False, True])
def test_a_matrix_has_its_major_mode_and_its_values(sim, is_mode0_major):
    made = matrix(2, 4, 6, is_mode0_major, cute.Float32, TensorInitType.SCALAR, ScalarInitConfig(3))
    assert made.shape == (4, 6, 2) and (made == 3).all()
    assert get_leading_dim(made) == (0 if is_mode0_major else 1)
    values = RandomInitConfig(min_val=-1, max_val=1)
    random = matrix(1, 32, 32, is_mode0_major, cute.Int32, TensorInitType.RANDOM, values)
    assert {*random.ravel().tolist()} <= {-1.0, 0.0, 1.0} and random.std() > 0
    normal = create_and_permute_torch_tensor(
        (2, 64, 64),
        torch.float32,
        permute_order=(1, 2, 0),
        init_type=TensorInitType.GAUSSIAN,
        init_config=GaussianInitConfig(mean=5.0, std=0.5),
    )
    assert normal.shape == (64, 64, 2) and abs(normal.mean() - 5) < 0.2
    skipped = create_and_permute_torch_tensor((3, 4), torch.float16, init_type=TensorInitType.SKIP)
    assert skipped.shape == (3, 4) and skipped.dtype == torch.float16


@pytest.mark.parametrize("kind", [cute.Float16, cute.BFloat16, cute.Float32, cute.Float8E4M3FN])
def test_a_tensor_like_another_is_a_copy_that_kernels_change(sim, kind):
    source = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    view, memory = cute_tensor_like(source, kind, is_dynamic_layout=True, assumed_align=16)
    assert view.element_type is kind
    double(view)
    bits = memory.view(torch.uint8) if kind.width == 8 else memory
    if kind.width == 8:
        bits = bits.view(torch.float8_e4m3fn)
    wanted = 2 * source.to(torch.float8_e4m3fn if kind.width == 8 else dtype(kind)).float()
    np.testing.assert_array_equal(bits.float().numpy(), wanted.numpy())
    assert source[1, 1] == 7


def test_values_are_converted_into_a_tensor(sim):
    source = torch.linspace(-3, 3, 24).reshape(4, 6)
    view, memory = cute_tensor_like(torch.zeros(4, 6), cute.Float16, is_dynamic_layout=True)
    convert_cute_tensor(source, view, cute.Float16, is_dynamic_layout=True)
    np.testing.assert_array_equal(memory.numpy(), source.half().numpy())


def test_memory_at_an_address_is_a_tensor():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    owner = torch.arange(6, dtype=torch.int32, device=device)
    seen = as_tensor(owner.data_ptr(), (2, 3), torch.int32)
    seen[1, 2] = -1
    assert owner[5] == -1 and get_leading_dim(seen) == 1


def test_bytes_that_hold_8_bit_floats(sim):
    storage = torch.zeros(4, 16, dtype=torch.uint8)
    source = torch.linspace(-4, 4, 64).reshape(4, 16)
    view = utils.create_cute_tensor_for_fp8(storage, cute.Float8E5M2, 1, source)
    assert view.element_type is cute.Float8E5M2 and view.leading_dim == 1
    wanted = source.to(torch.float8_e5m2).float()
    np.testing.assert_array_equal(storage.view(torch.float8_e5m2).float().numpy(), wanted.numpy())
