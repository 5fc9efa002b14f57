"""Collectives in processes of their own, on two GPUs of one host."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ROOT = Path(__file__).parents[3]
RANKS = 2
needs_two_gpus = pytest.mark.skipif(torch.cuda.device_count() < RANKS, reason="needs two GPUs")


def run(*program):
    """Run a program on each GPU, as torchrun does but without its agent, which would end the other
    ranks when one is killed. Returns the exit statuses and the output of all.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = [ROOT, ROOT / "plugins/cute", ROOT / "plugins/toy", os.environ.get("PYTHONPATH", "")]
    begun = []
    for rank in range(RANKS):
        world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS)}
        world |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        world["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        begun.append(
            subprocess.Popen(
                [sys.executable, *map(str, program)], env=os.environ | world, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
    try:
        output = "".join(one.communicate(timeout=120)[0] for one in begun)
    finally:
        for one in begun:
            one.kill()
    return [one.returncode for one in begun], output


PROGRAM = Path(__file__).parent / "ranks_on_gpus.py"


@needs_two_gpus
def test_streams_groups_graphs_operations_and_pointers():
    pytest.importorskip("cupy", reason="CuPy is not installed")
    status, output = run(PROGRAM, "together", "operations", "pointers")
    assert status == [0, 0], output
    assert output.count("1000 turns on two streams") == RANKS
    assert output.count("a feed-forward layer is that of one GPU") == RANKS
    assert output.count("memory that is shared by CUDA IPC is right") == RANKS


@needs_two_gpus
def test_memory_of_nvshmem():
    memory = pytest.importorskip("torch.distributed._symmetric_memory")
    if not memory.is_nvshmem_available():
        pytest.skip("this PyTorch has no NVSHMEM")
    status, output = run(PROGRAM, "nvshmem")
    assert status == [0, 0], output
    assert output.count("memory of NVSHMEM, by PyTorch, is right") == RANKS


@needs_two_gpus
def test_grids_of_hosts():
    status, output = run(Path(__file__).parent / "grid_of_ranks.py")
    assert status == [0, 0], output
    assert output.count("3 grids are right on cuda") == RANKS


@needs_two_gpus
def test_attention_over_ranks():
    status, output = run(Path(__file__).parent / "context_of_ranks.py")
    assert status == [0, 0], output
    assert output.count("attention over 2 ranks is right on cuda") == RANKS


@needs_two_gpus
def test_a_layer_of_dtensors():
    status, output = run(Path(__file__).parent / "layer_of_dtensors.py")
    assert status == [0, 0], output
    assert output.count("a layer of DTensors is right on cuda") == RANKS


@needs_two_gpus
def test_a_rank_that_is_killed():
    status, output = run(PROGRAM, "killed")
    assert status == [0, -9], output
    assert "rank 0 waited 1 s for the signal of rank 1" in output, output
    assert "the process goes on: True" in output
    status, output = run(ROOT / "examples/torch/tensor_parallel.py")  # nothing is left locked
    assert status == [0, 0], output
    assert "a layer on 2 ranks is equal to the layer on one, forward and backward" in output
