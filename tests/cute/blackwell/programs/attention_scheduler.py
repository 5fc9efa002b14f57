"""The tile scheduler of a program, an object that loops carry by methods of its own."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass.cute.typing import Int32
from cutlass.cutlass_dsl import extract_mlir_values, new_from_mlir_values


class FmhaStaticTileSchedulerParams:
    def __init__(self, is_persistent: bool, problem_shape_mbh: cute.Shape, *, loc=None, ip=None):
        self.is_persistent = is_persistent
        self.problem_shape_mbh = problem_shape_mbh
        self._loc, self._ip = loc, ip

    def __extract_mlir_values__(self):
        values, self._values_pos = [], []
        for obj in [self.problem_shape_mbh]:
            obj_values = extract_mlir_values(obj)
            values += obj_values
            self._values_pos.append(len(obj_values))
        return values

    def __new_from_mlir_values__(self, values):
        obj_list = []
        for obj, n_items in zip([self.problem_shape_mbh], self._values_pos):
            obj_list.append(new_from_mlir_values(obj, values[:n_items]))
            values = values[n_items:]
        return FmhaStaticTileSchedulerParams(self.is_persistent, *(tuple(obj_list)), loc=self._loc)


class FmhaStaticTileScheduler:
    def __init__(
        self,
        params,
        current_work_linear_idx: Int32,
        blk_coord: cute.Coord,
        grid_shape: cute.Shape,
        *,
        loc=None,
        ip=None,
    ):
        self._params = params
        self._blk_coord = blk_coord
        self._grid_shape = grid_shape
        self._is_persistent = params.is_persistent
        self._current_work_linear_idx = current_work_linear_idx
        self._problem_shape_mbh = cute.make_layout(params.problem_shape_mbh, loc=loc, ip=ip)
        self._num_blocks = cute.size(self._problem_shape_mbh, loc=loc, ip=ip)
        self._is_first_block = True
        self.num_persistent_sm = cute.size(grid_shape, loc=loc, ip=ip)
        self._loc, self._ip = loc, ip

    @staticmethod
    def create(params, blk_coord, grid_shape, *, loc=None, ip=None):
        return FmhaStaticTileScheduler(params, blk_coord[0], blk_coord, grid_shape, loc=loc, ip=ip)

    @staticmethod
    def get_grid_shape(params, max_ctas, *, loc=None, ip=None):
        if params.is_persistent:
            return (
                cutlass.min(max_ctas, cute.size(params.problem_shape_mbh, loc=loc, ip=ip)),
                1,
                1,
            )
        return params.problem_shape_mbh

    def get_current_work(self, *, loc=None, ip=None) -> utils.WorkTileInfo:
        is_valid = (
            self._current_work_linear_idx < self._num_blocks
            if self._is_persistent
            else self._is_first_block
        )
        blk_coord = (0, 0, 0)
        if self._is_persistent:
            blk_coord = self._problem_shape_mbh.get_hier_coord(
                self._current_work_linear_idx, loc=loc, ip=ip
            )
        else:
            blk_coord = self._blk_coord
        cur_tile_coord = (blk_coord[0], 0, (blk_coord[1], blk_coord[2]))
        return utils.WorkTileInfo(cur_tile_coord, is_valid)

    def initial_work_tile_info(self, *, loc=None, ip=None):
        return self.get_current_work(loc=loc, ip=ip)

    def advance_to_next_work(self, *, advance_count=1, loc=None, ip=None):
        if self._is_persistent:
            self._current_work_linear_idx += advance_count * self.num_persistent_sm
        self._is_first_block = False

    def __extract_mlir_values__(self):
        values = extract_mlir_values(self._params)
        values.extend(extract_mlir_values(self._current_work_linear_idx))
        values.extend(extract_mlir_values(self._blk_coord))
        values.extend(extract_mlir_values(self._grid_shape))
        return values

    def __new_from_mlir_values__(self, values):
        new_params = new_from_mlir_values(self._params, values[0:3])
        idx = new_from_mlir_values(self._current_work_linear_idx, [values[3]])
        blk = new_from_mlir_values(self._blk_coord, values[4:7])
        grid = new_from_mlir_values(self._grid_shape, values[7:])
        return FmhaStaticTileScheduler(new_params, idx, blk, grid)
