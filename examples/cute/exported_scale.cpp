// Calls a function that `compiled.export_to_c(folder, "scale")` wrote as scale.o and scale.h:
// c++ exported_scale.cpp scale.o -lcuda. What is passed is checked before anything runs.
#include <cstdio>
#include "scale.h"

struct Module {
  scale_Kernel_Module_t handle{};
  Module() { if (scale_Kernel_Module_Load(&handle)) throw 1; }
  ~Module() { scale_Kernel_Module_Unload(&handle); }
};

int main() {
  alignas(16) static float data[1024];
  Module module;
  const scale_Tensor_x_t good{data, {256, 4}, {256}};
  int32_t result = 0;
  auto call = [&](const scale_Tensor_x_t *x, int32_t *out) {
    return cute_dsl_scale_wrapper(&module.handle, x, 2.0f, out);
  };
  const int status = call(&good, &result);
  std::printf("good %d %d\n", status, result);
  std::printf("no tensor %d\n", call(nullptr, &result) == scale_ERROR_NULL);
  std::printf("no result %d\n", call(&good, nullptr) == scale_ERROR_NULL);
  auto other = good;
  other.data = nullptr;
  std::printf("no data %d\n", call(&other, &result) == scale_ERROR_NULL);
  other.dynamic_shapes[0] = 0;
  std::printf("empty %d\n", call(&other, &result) == scale_ERROR_NULL);
  other = good;
  other.data = data + 1;
  std::printf("misaligned %d\n", call(&other, &result) == scale_ERROR_ALIGNMENT);
  other = good;
  other.dynamic_strides[0] = 258;
  std::printf("stride %d\n", call(&other, &result) == scale_ERROR_STRIDE);
  other = good;
  other.dynamic_shapes[0] = 254;
  std::printf("extent %d\n", call(&other, &result) == scale_ERROR_EXTENT);
  other.dynamic_shapes[0] = -4;
  std::printf("negative %d\n", call(&other, &result) == scale_ERROR_EXTENT);
}
