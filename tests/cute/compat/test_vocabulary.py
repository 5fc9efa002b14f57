"""The names that programs written for CuTe's Python DSL use are where they look for them, or are
errors that say why; docs/from_cute_dsl.md has them in a table.
"""

import dataclasses
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import basedsl_cute
from basedsl import DSLError
from basedsl_cute.dsl.function import CuteFunction
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.host.kernel_launch import KernelCall

sys.path.insert(0, str(Path(__file__).parent))

import vocabulary
from vocabulary import place

# Modules that programs import by their path, not only as attributes.
MODULES = """typing core runtime testing math arch nvgpu nvgpu.warp nvgpu.warpgroup nvgpu.cpasync
    nvgpu.common nvgpu.tcgen05 pipeline utils utils.hopper_helpers utils.blackwell_helpers
    utils.sm90 utils.sm100 utils.blockscaled_layout utils.tensor_helpers utils.hardware_info
    utils.gemm utils.gemm.sm100 utils.distributed utils.mixed_input_helpers
    utils.static_persistent_tile_scheduler
    torch jax jax.testing cuda cutlass_dsl cute cute.nvgpu cute.nvgpu.warp cute.runtime cute.testing
    cute.typing cute.math cute.arch
    base_dsl.typing base_dsl.arch base_dsl.dsl base_dsl.runtime.cuda"""

INTERNAL = """FrontendNext arch.nvvm_wrappers arch.sext_unpacked_i4_i8_intrinsic
    base_dsl.dsl.set_dynamic_debug"""


def test_the_docs_have_the_table_of_names(request):
    docs = Path(__file__).parents[3] / "docs" / "from_cute_dsl.md"
    text = docs.read_text()
    before, begin, rest = text.partition("<!-- names: written by a test -->\n")
    _, end, after = rest.partition("<!-- end of names -->\n")
    wanted = before + begin + vocabulary.table() + end + after
    if request.config.getoption("--update-golden"):
        docs.write_text(wanted)
        text = wanted
    assert begin and end and text == wanted, "pytest --update-golden writes the table"


ERRORS = [
    (path, name)
    for path, names in vocabulary.NAMES.items()
    for name in names.split()
    if vocabulary.mark(path, name) == vocabulary.ERROR
]


@pytest.mark.parametrize(("path", "name"), ERRORS)
def test_using_what_is_not_offered_says_why(path, name):
    stand_in = vocabulary.find(path, name)
    with pytest.raises(DSLError, match=rf"{name} ") as error:
        stand_in()
    assert error.value.hint


# Called by `TensorMapManager.update_tensormap`, which tests call.
INSIDE = {
    f"nvgpu.cpasync.{name}"
    for name in ("update_tma_descriptor", "fence_tma_desc_release", "cp_fence_tma_desc_release")
}


def test_each_working_name_is_in_a_test_or_an_example():
    """A name that no program uses may well be there and not work."""
    here = Path(__file__).parents[3]
    files = [*(here / "tests").rglob("*.py"), *(here / "examples").rglob("*.py")]
    text = "\n".join(file.read_text() for file in files if file.name != "vocabulary.py")
    words = set(re.findall(r"\w+", text))
    unused = {
        f"{path}.{name}"
        for path, names in vocabulary.NAMES.items()
        for name in names.split()
        if name not in words and vocabulary.mark(path, name) != vocabulary.ERROR
    }
    assert not unused - INSIDE


@pytest.mark.parametrize("name", vocabulary.LAUNCH.split())
def test_arguments_of_a_launch(name):
    assert name in inspect.signature(KernelCall.launch).parameters


@pytest.mark.parametrize("name", vocabulary.OPTIONS)
def test_options(sim, name):
    @basedsl_cute.jit
    def nothing():
        pass

    value = vocabulary.OPTIONS[name]
    text = f"--{name}" if value is None else f"--{name} '{value}'"
    if name in vocabulary.OPTION_ERRORS:
        with pytest.raises(DSLError, match=name):
            basedsl_cute.compile(nothing, options=text)
    else:
        basedsl_cute.compile(nothing, options=text)


def test_variables():
    known = {field.name.upper() for field in dataclasses.fields(CuteOptions)}
    for one in CuteOptions.__mro__:
        known |= {*vars(one).get("VARIABLES", ())}
    known |= {"LOG_TO_CONSOLE", "LOG_TO_FILE", "LOG_LEVEL"}  # of basedsl.logs
    known.add(CuteOptions.TEXT_VARIABLE)
    assert {*vocabulary.VARIABLES} <= known


@pytest.mark.parametrize("name", MODULES.split())
def test_modules_can_be_imported_by_path(name):
    importlib.import_module(f"basedsl_cute.{name}")


@pytest.mark.parametrize("path", INTERNAL.split())
def test_what_is_internal_elsewhere_says_what_to_write(path):
    module, _, name = path.rpartition(".")
    where = importlib.import_module(f"basedsl_cute.{module}".rstrip("."))
    stand_in = getattr(where, name)
    with pytest.raises(DSLError, match=rf"{name} is internal to CuTe's own DSL") as error:
        stand_in()
    assert error.value.hint


def test_layers_that_are_not_offered_say_what_there_is():
    with pytest.raises(DSLError, match="experimental layer of CuTe's DSL, and is not offered"):
        basedsl_cute.cute.experimental.tma_load()


def test_an_alias_is_the_module_itself():
    alias = importlib.import_module("basedsl_cute.cute.nvgpu.warp")
    assert alias is basedsl_cute.nvgpu.warp
    assert importlib.import_module("basedsl_cute.utils.sm90") is basedsl_cute.utils.hopper_helpers
    assert basedsl_cute.cute is basedsl_cute


def test_other_unknown_names_are_plain_attribute_errors():
    for module in (basedsl_cute.arch, basedsl_cute.nvgpu, basedsl_cute.utils):
        with pytest.raises(AttributeError, match="has no 'nonsense'"):
            _ = module.nonsense


OPERATIONS = """arch math pipeline nvgpu.cpasync nvgpu.warpgroup utils.hopper_helpers
    pipeline.PipelineAsync pipeline.PipelineTmaAsync pipeline.PipelineTmaStore
    pipeline.PipelineCpAsync pipeline.PipelineState pipeline.PipelineOrder pipeline.NamedBarrier
    pipeline.PipelineProducer pipeline.PipelineConsumer utils.StaticPersistentTileScheduler
    utils.TensorMapManager utils.SmemAllocator"""


def is_operation(f):
    """Not what a module imports for itself."""
    helpers = (
        "basedsl_cute.algebra.ignored_location",
        "basedsl_cute.tensors.tensor_ssa",
        "basedsl_cute.tensors.vector_ops",
    )
    name = getattr(f, "__module__", None) or ""
    return inspect.isfunction(f) and name.startswith("basedsl_cute") and name not in helpers


@pytest.mark.parametrize("path", OPERATIONS.split())
def test_operations_take_a_location(path):
    where = place(path)
    names = getattr(where, "__all__", None) or [n for n in dir(where) if not n.startswith("_")]
    functions = {n: getattr(getattr(where, n), "__func__", getattr(where, n)) for n in names}
    without = [
        name
        for name, f in functions.items()
        if is_operation(f)
        and not {"loc", "ip"} <= {*(f.__kwdefaults__ or ()), *inspect.signature(f).parameters}
    ]
    assert not without
    assert sum(map(is_operation, functions.values())) > 1


# Places of host code, and what is asked while compiling: neither is an operation.
WITHOUT_LOCATIONS = frozenset(
    """runtime runtime.Tensor torch testing testing.JitArguments cuda jax jax.testing struct
    base_dsl base_dsl.dsl base_dsl.dsl.BaseDSL base_dsl.runtime.cuda cutlass_dsl.T utils.LayoutEnum
    utils.HardwareInfo experimental _mlir _mlir.dialects""".split()
) | {vocabulary.FUNCTION}
NO_OPERATIONS = frozenset(
    """const_expr range range_constexpr range_dynamic dynamic_expr dtype register_jit_arg_adapter
    target_version jit kernel native_struct sym_int sym_int32 sym_int64 dsl_user_op
    extract_mlir_values new_from_mlir_values install_as is_same_kind create_initial_search_state
    create_cute_tensor_for_fp8 is_fp8_dtype from_name reduced to is_static""".split()
)


def test_all_functions_of_the_vocabulary_take_a_location():
    without = []
    for path, names in vocabulary.NAMES.items():
        for name in names.split():
            if path in WITHOUT_LOCATIONS or name in NO_OPERATIONS:
                continue
            function = vocabulary.find(path, name)
            function = getattr(function, "__func__", function)
            if isinstance(function, CuteFunction) or not inspect.isroutine(function):
                continue
            parameters = inspect.signature(function, follow_wrapped=False).parameters
            anything = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
            if not anything and not {"loc", "ip"} <= {*parameters}:
                without.append(f"{path}.{name}")
    assert not without


def test_operations_on_layouts_take_a_location():
    layout = basedsl_cute.make_layout((4, 8), loc=None, ip=None)
    assert basedsl_cute.size(layout, mode=[1], loc=None, ip=None) == 8
    assert basedsl_cute.crd2idx((1, 2), layout, loc=None, ip=None) == 9
