"""Tensors, vectors and copies in every form that programs call them in: positional, by keyword,
with `loc=` and `ip=`. Each form prints what it makes.
"""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import nvgpu
from basedsl_cute.runtime import from_dlpack

SETUP = """
G = g
S = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, cute.make_layout((8, 64), stride=(64, 1)), 128)
R = cute.make_rmem_tensor((2, 4), cute.Float16)
P = cute.make_rmem_tensor((2, 4), cute.Boolean)
C = cute.make_identity_tensor((8, 64))
T = cute.arch.thread_idx()[0]
ATOM = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=64)
TILED = cute.make_tiled_copy_tv(ATOM, cute.make_layout((8, 16), stride=(16, 1)), cute.make_layout((1, 4)))
V = G[0, None].load()
M = cute.make_tiled_mma(nvgpu.MmaUniversalOp(cute.Float32), (8, 4, 1))
"""  # noqa: E501

VIEW = "(8,64):(64,1)>"
FORMS = {
    # 3.4 pointers and tensors
    "G": "tensor<ptr<Float16, gmem, align<16>> o (8,64):(64,1)>",
    "S": "tensor<ptr<Float16, smem, align<1024>> o (8,64):(64,1)>",
    "G.iterator + 3": "ptr<Float16, gmem, align<2>>",
    "G.iterator + 8": "ptr<Float16, gmem, align<16>>",
    "(G.iterator + 3).align(8)": "ptr<Float16, gmem, align<8>>",
    "(G.iterator.dtype.__name__, G.iterator.value_type.__name__)": "('Float16', 'Float16')",
    "(G.iterator.memspace, G.iterator.alignment)": "('gmem', 16)",
    "cute.recast_ptr(S.iterator, dtype=cute.Float32)": "ptr<Float32, smem, align<1024>>",
    "cute.recast_ptr(S.iterator, cute.make_swizzle(3, 4, 3))":
        "ptr<Float16, smem, align<1024>, S<3,4,3>>",
    "cute.recast_ptr(S.iterator, swizzle_=cute.make_swizzle(3, 4, 3), dtype=cute.Uint8, loc=None)":
        "ptr<Uint8, smem, align<1024>, S<3,4,3>>",
    "cute.recast_tensor(S, cute.Float32)":
        "tensor<ptr<Float32, smem, align<1024>> o (8,32):(32,1)>",
    "cute.recast_tensor(S, dtype=cute.Uint8)":
        "tensor<ptr<Uint8, smem, align<1024>> o (8,128):(128,1)>",
    "cute.make_tensor(G.iterator, (4, 4))": "tensor<ptr<Float16, gmem, align<16>> o (4,4):(1,4)>",
    "cute.make_tensor(iterator=G.iterator, layout=cute.make_layout(8), loc=None, ip=None)":
        "tensor<ptr<Float16, gmem, align<16>> o 8:1>",
    "cute.make_tensor((0, 0), cute.make_identity_layout((2, 3)))[1, 2]": "(1, 2)",
    "cute.make_identity_tensor((4, 8))[3, 5]": "(3, 5)",
    "cute.make_identity_tensor(shape=(4, 8))[9]": "(1, 2)",
    "cute.make_rmem_tensor(shape_or_layout=(2, 4), dtype=cute.Float32).layout": "(2,4):(1,2)",
    "cute.make_rmem_tensor(cute.make_layout((2, 4), stride=(4, 1)), cute.Float32).layout":
        "(2,4):(4,1)",
    "cute.make_fragment((2, 4), cute.Float32).memspace": "rmem",
    "cute.make_rmem_tensor_like(G).layout": "(8,64):(1,8)",
    "cute.make_rmem_tensor_like(G, cute.Float32).element_type.__name__": "Float32",
    "cute.make_fragment_like(G).layout": "(8,(64)):(1,(8))",
    "cute.make_fragment_like(G, dtype=cute.Float32).element_type.__name__": "Float32",
    "cute.make_fragment_like(G.layout, cute.Int32).element_type.__name__": "Int32",
    "(G.shape, G.stride, G.layout)": "((8, 64), (64, 1), (8,64):(64,1))",
    "(G.element_type.__name__, G.memspace, G.leading_dim)": "('Float16', 'gmem', 1)",
    "G[None, 3].layout": "(8):(64)",
    "G[(None, 3)].layout": "(8):(64)",
    "G[3, None].iterator": "ptr<Float16, gmem, align<16>>",
    "type(G[1, 2]).__name__": "Float16",
    "type(G[9]).__name__": "Float16",
    "C[3, 5]": "(3, 5)",
    "type(R.load()).__name__": "TensorSSA",
    "R.fill(0.0)": "None",
    "R.store(R.load() + R.load())": "None",
    "cute.group_modes(G, 0, 2).layout": "((8,64)):((64,1))",
    "cute.group_modes(G, begin=0, end=2).layout": "((8,64)):((64,1))",
    "cute.flatten(cute.group_modes(G, 0, 2)).layout": "(8,64):(64,1)",
    "cute.select(G, mode=[1]).layout": "(64):(1)",
    "cute.slice_(G, (2, None)).layout": "(64):(1)",
    "cute.append_ones(G, up_to_rank=3).layout": "(8,64,1):(64,1,0)",
    "cute.filter_zeros(G).layout": "(8,64):(64,1)",
    "cute.composition(G, (2, 2)).layout": "(2,2):(64,1)",
    "cute.size(G, mode=[1])": "64",
    "cute.zipped_divide(G, (4, 32)).layout": "((4,32),(2,2)):((64,1),(256,32))",
    "cute.zipped_divide(G, tiler=(4, 32)).layout": "((4,32),(2,2)):((64,1),(256,32))",
    "cute.logical_divide(G, (4, None)).layout": "((4,2),64):((64,256),1)",
    "cute.tiled_divide(C, (4, 32))[(1, 2), 1, 0]": "(5, 2)",
    "cute.flat_divide(G, (4, 32)).layout": "(4,32,2,2):(64,1,256,32)",
    "cute.local_tile(G, (4, 32), (1, 0)).layout": "(4,32):(64,1)",
    "cute.local_tile(G, tiler=(4, 32), coord=(None, 0)).layout": "(4,32,2):(64,1,256)",
    "cute.local_tile(G, tiler=(4, 16, 32), coord=(1, 0, None), proj=(1, None, 1)).layout":
        "(4,32,2):(64,1,32)",
    "cute.local_partition(G, cute.make_layout((2, 4)), 3).layout": "(4,16):(128,4)",
    "cute.local_partition(G, cute.make_layout((2, 4)), index=T, proj=(1, 1)).layout":
        "(4,16):(128,4)",
    "cute.domain_offset((1, 8), G).iterator": "ptr<Float16, gmem, align<16>>",
    "cute.domain_offset((0, 1), G).iterator": "ptr<Float16, gmem, align<2>>",
    # 3.5 vectors
    "(V.shape, V.dtype.__name__, V.element_type.__name__)": "((64,), 'Float16', 'Float16')",
    "(R.load() + 1.0).shape": "(2, 4)",
    "(R.load() < R.load()).dtype.__name__": "Boolean",
    "R.load()[1, None].shape": "(4,)",
    "type(R.load()[1, 2]).__name__": "Float16",
    "R.load().to(cute.Float32).dtype.__name__": "Float32",
    "type(R.load().reduce(cute.ReductionOp.ADD, 0.0)).__name__": "Float16",
    "R.load().reduce(op=cute.ReductionOp.MAX, init_val=0.0, reduction_profile=(None, 1)).shape":
        "(2,)",
    "R.load().reduce(cute.ReductionOp.MUL, 1.0, reduction_profile=0).dtype.__name__": "Float16",
    "R.load()[1, None].broadcast_to((2, 4)).shape": "(2, 4)",
    "cute.where(R.load() > 0.0, R.load(), 0.0).shape": "(2, 4)",
    "cute.where(cond=R.load() > 0.0, x=0.0, y=R.load()).dtype.__name__": "Float16",
    "cute.full_like(R.load(), 1.0).shape": "(2, 4)",
    "cute.full_like(R, 1, cute.Int32).dtype.__name__": "Int32",
    "cute.zeros_like(R.load()).dtype.__name__": "Float16",
    "type(cute.all_(R.load() > 0.0)).__name__": "Boolean",
    "type(cute.any_(R.load() > 0.0)).__name__": "Boolean",
    "cute.math.exp(R.load().to(cute.Float32), fastmath=True).shape": "(2, 4)",
    "type(cute.math.rsqrt(cute.Float32(2.0), True)).__name__": "Float32",
    "type(cute.math.rcp(cute.Float32(2.0), approx=True, ftz=True)).__name__": "Float32",
    "type(cute.math.max(cute.Float32(1.0), cute.Float32(2.0))).__name__": "Float32",
    "cute.exp(R.load().to(cute.Float32)).shape": "(2, 4)",
    # 4.1 copies
    "cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16).num_bits": "None",
    "ATOM.num_bits": "64",
    "cute.make_copy_atom(op=nvgpu.CopyUniversalOp(), dtype=cute.Float16, num_bits_per_copy=128, "
    "memory_scope=None, memory_order=None).num_bits": "128",
    "cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(cache_mode=nvgpu.cpasync.LoadCacheMode.GLOBAL), "
    "cute.Float16, num_bits_per_copy=128).num_bits": "128",
    "(TILED.tiler_mn, TILED.size)": "((8:1, 64:1), 128)",
    "TILED.layout_src_tv_tiled == TILED.layout_dst_tv_tiled": "True",
    "cute.make_tiled_copy_tv(ATOM, thr_layout=cute.make_layout((8, 16), stride=(16, 1)), "
    "val_layout=cute.make_layout((1, 4))).tiler_mn": "(8:1, 64:1)",
    "cute.make_tiled_copy(ATOM, layout_tv=TILED.layout_src_tv_tiled, tiler_mn=(8, 64)).size": "128",
    "cute.make_tiled_copy_S(ATOM, TILED).size": "128",
    "cute.make_tiled_copy_D(ATOM, tiled_copy=TILED).size": "128",
    "cute.make_tiled_copy_A(cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32), M).size":
        "32",
    "cute.make_tiled_copy_C(cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32), M).size":
        "32",
    "TILED.get_slice(T).partition_S(G).layout": "((4,1),1,1):((1,0),0,0)",
    "TILED.get_slice(thr_idx=T).partition_D(S).layout": "((4,1),1,1):((1,0),0,0)",
    "TILED.get_slice(0).partition_S(C)[1]": "(0, 1)",
    "TILED.retile(cute.make_rmem_tensor((4, 1, 1), cute.Float16)).layout":
        "((4,1),1,1):((1,0),0,0)",
    "TILED.get_slice(T).retile(cute.make_rmem_tensor((4, 1, 1), cute.Float16)).layout":
        "((4,1),1,1):((1,0),0,0)",
    "cute.copy(TILED, TILED.get_slice(T).partition_S(G), TILED.get_slice(T).partition_D(S))":
        "None",
    "cute.copy(TILED, TILED.get_slice(T).partition_S(G), TILED.get_slice(T).partition_D(S), "
    "pred=None, loc=None, ip=None)": "None",
    "cute.autovec_copy(G[0, None], S[0, None])": "None",
    "cute.autovec_copy(src=G[0, None], dst=S[0, None], "
    "l1c_evict_priority=nvgpu.CacheEvictionPriority.EVICT_LAST)": "None",
    "cute.basic_copy(G[0, None], S[0, None])": "None",
    "cute.basic_copy_if(P, cute.make_rmem_tensor_like(R), R)": "None",
    "cute.copy_atom_call(ATOM, cute.make_tensor(G.iterator, 4), cute.make_tensor(S.iterator, 4))":
        "None",
    "all(isinstance(x, type) for x in (cute.CopyAtom, cute.MmaAtom, cute.TiledCopy, "
    "cute.TiledMma, cute.ThrCopy, cute.ThrMma))": "True",
}  # fmt: skip


def evaluate(g):
    """The output of each form, or its failure."""
    scope = {"cute": cute, "nvgpu": nvgpu, "g": g}
    exec(SETUP, scope)
    found = {}
    for text in FORMS:
        try:
            found[text] = str(eval(text, scope))
        except Exception as error:
            found[text] = f"{type(error).__name__}: {error}"
    return found


@pytest.fixture(scope="module")
def found():
    results = {}

    @cute.kernel
    def kernel(g: cute.Tensor):
        results.update(evaluate(g))

    @cute.jit
    def host(g: cute.Tensor):
        kernel(g).launch(grid=(1, 1, 1), block=(128, 1, 1))

    array = from_dlpack(np.zeros((8, 64), np.float16), assumed_align=16)
    cute.compile(host, array, options="--arch sm_80")
    return results


@pytest.mark.parametrize("text", FORMS)
def test_a_form_has_its_value(found, text):
    assert found[text] == FORMS[text]
