"""Properties of the device for host code that plans a launch. The simulator reports those of an
H100 with SXM5.
"""

from __future__ import annotations

import functools
from typing import Any

from basedsl import DSLCallError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.device import driver
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import CLUSTERS
from basedsl_cute.hardware.targets import (
    MAX_CLUSTER,
    PORTABLE_CLUSTER,
    Target,
    target_for_capability,
    target_of,
)

# NVIDIA H100 Tensor Core GPU Architecture, table 4: the SXM5 board.
SIMULATED_MULTIPROCESSORS = 132
SIMULATED_L2_CACHE = 50 << 20

_EMPTY_KERNEL = """
.version {version}
.target {name}
.address_size 64
.visible .entry empty() {{ ret; }}
"""


class HardwareInfo:
    """The properties of the CUDA device number `device_id`, by default the current device: methods
    return the number of multiprocessors and of clusters that run at once. On the simulator they are
    those of an H100.
    """

    def __init__(self, device_id: int | None = None, *, loc: Any = None, ip: Any = None) -> None:
        self.device_id = device_id

    @property
    def _device(self) -> driver.Device | None:
        if not current_target().is_gpu or not driver.is_available():
            return None
        number = driver.current_device() if self.device_id is None else self.device_id
        return driver.device(number)

    @takes_location
    def get_device_multiprocessor_count(self) -> int:
        """Return the number of multiprocessors; 132 on the simulator."""
        device = self._device
        return SIMULATED_MULTIPROCESSORS if device is None else device.multiprocessors

    @takes_location
    def get_max_active_clusters(self, cluster_size: int) -> int:
        """Return the number of clusters of `cluster_size` blocks that the device runs at once,
        each block with all shared memory of a multiprocessor; on the simulator, as many as fit
        132 blocks. Raises DSLCallError for a size that no target has.
        """
        if type(cluster_size) is not int or not 1 <= cluster_size <= MAX_CLUSTER:
            raise DSLCallError(f"a cluster has 1 to {MAX_CLUSTER} blocks, not {cluster_size!r}")
        device = self._device
        if device is None:
            return SIMULATED_MULTIPROCESSORS // cluster_size
        if not CLUSTERS.is_met_by(target_for_capability(*device.capability)):
            return device.multiprocessors // cluster_size
        return _active_clusters(device.number, cluster_size)

    @takes_location
    def get_l2_cache_size_in_bytes(self) -> int:
        """Return the size of the L2 cache in bytes; 50 MiB on the simulator."""
        device = self._device
        return SIMULATED_L2_CACHE if device is None else device.l2_cache


@functools.cache
def _active_clusters(number: int, cluster_size: int) -> int:
    """Ask the driver's occupancy calculation (CUDA driver API, cuOccupancyMaxActiveClusters)."""
    driver.ensure_context()
    device = driver.device(number)
    target = target_for_capability(*device.capability)
    version = f"{target.ptx // 10}.{target.ptx % 10}"
    library = driver.Library(_EMPTY_KERNEL.format(version=version, name=target.name))
    kernel = library.kernel("empty")
    kernel.set_attribute(driver.MAX_DYNAMIC_SMEM, device.smem_per_block, number)
    if cluster_size > PORTABLE_CLUSTER:
        kernel.set_attribute(driver.NON_PORTABLE_CLUSTER, 1, number)
    clusters = kernel.active_clusters(cluster_size, 128, device.smem_per_block)
    library.unload()
    return clusters


@takes_location
def get_smem_capacity_in_bytes(compute_capability: str | None = None) -> int:
    """Return the most shared memory of one block in bytes, of the target `compute_capability` such
    as "sm_90" or, by default, of the current one.
    """
    target: Target = current_target() if compute_capability is None else _target(compute_capability)
    return target.smem_per_block


def _target(name: Any) -> Target:
    if not isinstance(name, str):
        raise DSLCallError(f'a compute capability is written as "sm_90", not {name!r}')
    return target_of(name)
