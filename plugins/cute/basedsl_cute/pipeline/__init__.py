"""`cute.pipeline`: producers and consumers that pass stages of shared memory to each other.

Every function and method takes and ignores the keyword arguments `loc` and `ip`.
"""

from typing import TYPE_CHECKING

from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.pipeline.groups import (
    Agent,
    CooperativeGroup,
    NamedBarrier,
    arrive_and_wait,
    pipeline_init_arrive,
    pipeline_init_wait,
    sync,
)
from basedsl_cute.pipeline.launch_pipeline import PipelineClcFetchAsync
from basedsl_cute.pipeline.mbarrier_array import MbarrierArray, PipelineOp, agent_sync
from basedsl_cute.pipeline.mbarrier_pipelines import (
    PipelineAsync,
    PipelineCpAsync,
    PipelineTmaAsync,
    alloc_reserved_mbarrier,
)
from basedsl_cute.pipeline.order import PipelineOrder
from basedsl_cute.pipeline.participants import (
    ConsumerHandle,
    PipelineConsumer,
    PipelineProducer,
    ProducerHandle,
)
from basedsl_cute.pipeline.state import PipelineState, PipelineUserType, make_pipeline_state
from basedsl_cute.pipeline.tensor_pipelines import (
    PipelineAsyncUmma,
    PipelineTmaMultiConsumersAsync,
    PipelineTmaUmma,
    PipelineUmmaAsync,
)
from basedsl_cute.pipeline.tma_store import PipelineTmaStore

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "Agent",
    "ConsumerHandle",
    "CooperativeGroup",
    "MbarrierArray",
    "NamedBarrier",
    "PipelineAsync",
    "PipelineAsyncUmma",
    "PipelineClcFetchAsync",
    "PipelineConsumer",
    "PipelineCpAsync",
    "PipelineOp",
    "PipelineOrder",
    "PipelineProducer",
    "PipelineState",
    "PipelineTmaAsync",
    "PipelineTmaMultiConsumersAsync",
    "PipelineTmaStore",
    "PipelineTmaUmma",
    "PipelineUmmaAsync",
    "PipelineUserType",
    "ProducerHandle",
    "agent_sync",
    "alloc_reserved_mbarrier",
    "arrive_and_wait",
    "make_pipeline_state",
    "pipeline_init_arrive",
    "pipeline_init_wait",
    "sync",
]
