// How fast mma.sync is beside what a GEMM does meanwhile, with nothing to wait for: the most that
// `ops.ampere_gemm` can reach on a card. sm_90a.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -O3 -o bound bench/gpu/mma_sync_bound.cu && ./bound
//
// Eight warps multiply as for a tile of 128 x 256 x 64 a step: 64 x 64 each, 128 instructions of
// m16n8k16 and 32 ldmatrix.x4, fragments loaded one block of K ahead, shared memory swizzled as in
// the kernel. Four other warps do what is named, 24 times a thread and step (48 KB by cp.async), two
// steps behind at most; of TMA, one thread of them loads a step. All data is in shared memory from
// the start, so nobody waits for any, but with the ring, whose stages are waited for and released.
// A scheduler needs 6 cycles for an instruction.

#include <algorithm>
#include <cstdio>
#include <cuda.h>
#include <cuda_fp16.h>
#include <vector>

enum Beside {
  NOTHING, WAITING, COPIES, HALF, ZEROS, SAME_ROWS, PREFETCHES, LOADS, STORES, TMA, TMA_RING
};

constexpr int BM = 128, BN = 256, ROW = 128, STAGE = (BM + BN) * ROW, STAGES = 4, STEPS = 256;
constexpr int SHARED = STAGES * STAGE + 1024, ATOMS_M = 4, ATOMS_N = 8;

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void load(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ void wait_for(unsigned barrier, int phase) {
  asm volatile("{\n .reg .pred p;\n again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
               " @!p bra again;\n}" ::"r"(barrier), "r"(phase) : "memory");
}

template <bool WITH_LDMATRIX, bool RING>
__device__ float consume(unsigned base, volatile int *progress, unsigned full, unsigned empty) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row_a = warp % 2 * 64 + lane % 16, row_b = warp / 2 * 64 + lane % 8 + lane / 16 * 8;
  int half_a = lane / 16, half_b = lane / 8 % 2;
  unsigned sa = base + row_a * ROW, sb = base + (BM + row_b) * ROW;
  unsigned a[2][ATOMS_M][4], b[2][ATOMS_N / 2][4];
  float c[ATOMS_M][ATOMS_N][4] = {};
  auto fetch = [&](int to, unsigned stage, int k) {
    for (int i = 0; i < ATOMS_M; i++)
      load(a[to][i], sa + stage + i * 16 * ROW + ((2 * k + half_a) ^ row_a % 8) * 16);
    for (int j = 0; j < ATOMS_N / 2; j++)
      load(b[to][j], sb + stage + j * 16 * ROW + ((2 * k + half_b) ^ row_b % 8) * 16);
  };
  int phase = 0;
  if (RING)
    wait_for(full, 0);
  fetch(0, 0, 0);
  for (int step = 0, stage = 0; step < STEPS; step++) {
    int next = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (RING && k == 3) {
        phase ^= next == 0;
        if (step + 1 < STEPS)
          wait_for(full + next * 8, phase);
      }
      if (WITH_LDMATRIX)
        fetch(~k & 1, (k == 3 ? next : stage) * STAGE, (k + 1) % 4);
      int now = WITH_LDMATRIX ? k & 1 : 0;
#pragma unroll
      for (int i = 0; i < ATOMS_M; i++)
#pragma unroll
        for (int j = 0; j < ATOMS_N; j++)
          multiply(c[i][j], a[now][i], &b[now][j / 2][j % 2 * 2]);
    }
    if (RING && lane == 0)
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(empty + stage * 8) : "memory");
    stage = next;
    if (!RING && threadIdx.x == 0)
      *progress = step + 1;
  }
  float sum = 0;
  for (auto &row : c)
    for (auto &atom : row)
      for (float x : atom)
        sum += x;
  return sum;
}

template <Beside BESIDE>
__device__ unsigned produce(unsigned base, volatile int *progress, const char *source, long long ld) {
  int thread = threadIdx.x - 256, row = thread / 8, chunk = thread % 8;
  // Neighbouring blocks share rows of A and of B, as tiles of C do.
  const char *a = source + (blockIdx.x / 8 * BM + row) * ld + chunk * 16;
  const char *b = source + (64 << 20) + (blockIdx.x % 8 * BN + row) * ld + chunk * 16;
  unsigned target = base + row * ROW + (chunk ^ row % 8) * 16, bits = 0;
  for (int step = 0, stage = 0; step < STEPS; step++) {
    while (*progress < step - STAGES + 2)
      __nanosleep(100);
    for (int r = 0; r < (BESIDE == HALF ? (BM + BN) / 2 : BM + BN); r += 16) {
      const char *from = (BESIDE == SAME_ROWS ? a : r < BM ? a + r * ld : b + (r - BM) * ld);
      unsigned to = target + stage * STAGE + r * ROW;
      from += step % 64 * ROW;
      if (BESIDE == COPIES || BESIDE == HALF || BESIDE == SAME_ROWS)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
      if (BESIDE == ZEROS)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" ::"r"(to), "l"(from));
      if (BESIDE == PREFETCHES)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
      if (BESIDE == STORES)
        asm volatile("st.shared.v4.b32 [%0], {%1,%1,%1,%1};" ::"r"(to), "r"(0));
      if (BESIDE == LOADS) {
        unsigned x, y, z, w;
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                     : "l"(from));
        bits ^= x ^ y ^ z ^ w;
      }
    }
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 2;");
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  return bits;
}

// One thread: a stage by TMA, A and B of 64 columns.
template <bool RING>
__device__ void load_tiles(unsigned base, volatile int *progress, const CUtensorMap *map,
                           unsigned full, unsigned empty) {
  for (int step = 0, stage = 0, phase = 1; step < STEPS; step++) {
    if (RING)
      wait_for(empty + stage * 8, phase);
    else {
      while (*progress < step - STAGES + 2)
        __nanosleep(100);
      if (step >= STAGES)  // what went there before
        wait_for(full + stage * 8, phase);
    }
    unsigned barrier = full + stage * 8, to = base + stage * STAGE;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE));
    int rows[2] = {(int)(blockIdx.x / 8 * BM), (int)(8192 + blockIdx.x % 8 * BN)};
    for (int part = 0; part < 2; part++) {
      for (int r = 0; r < (part ? BN : BM); r += 128)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to + (part * BM + r) * ROW),
                     "l"(map), "r"(step % 64 * 64), "r"(rows[part] + r), "r"(barrier)
                     : "memory");
    }
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
  for (int i = 0; i < STAGES; i++)  // the last ones
    wait_for(full + i * 8, STEPS / STAGES - 1 & 1);
}

template <bool WITH_LDMATRIX, Beside BESIDE>
__global__ void __launch_bounds__(384, 1)
    kernel(const char *source, float *out, long long *clocks, long long ld,
           const __grid_constant__ CUtensorMap map) {
  extern __shared__ char shared[];
  __shared__ volatile int progress;
  __shared__ long long barriers[2 * STAGES];
  unsigned full = (unsigned)__cvta_generic_to_shared(barriers), empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2 * STAGES; i++)
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(full + 8 * i), "r"(i < STAGES ? 1 : 8));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  unsigned base = ((unsigned)__cvta_generic_to_shared(shared) + 1023) & ~1023u;
  if (threadIdx.x == 0)
    progress = 0;
  for (int i = threadIdx.x; i < STAGES * STAGE / 16; i += 384) {
    int4 v = ((const int4 *)source)[i];
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(base + i * 16), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w));
  }
  __syncthreads();
  if (threadIdx.x >= 256) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (BESIDE == TMA || BESIDE == TMA_RING) {
      if (threadIdx.x == 256)
        load_tiles<BESIDE == TMA_RING>(base, &progress, &map, full, empty);
    } else if (BESIDE != NOTHING && produce<BESIDE>(base, &progress, source, ld) == 0x12345)
      out[0] = 1;
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  long long begun = clock64(), since, until;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since));
  float sum = consume<WITH_LDMATRIX, BESIDE == TMA_RING>(base, &progress, full, empty);
  long long ended = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(until));
  out[blockIdx.x * 256 + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    clocks[2 * blockIdx.x] = ended - begun;
    clocks[2 * blockIdx.x + 1] = until - since;
  }
}

// Rows of 8192 bytes; boxes of 128 rows of 128 bytes, swizzled.
CUtensorMap tensor_map(const char *source) {
  void *found;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                   &result);
  CUtensorMap map;
  cuuint64_t extents[] = {4096, 20480}, strides[] = {8192};
  cuuint32_t box[] = {64, 128}, steps[] = {1, 1};
  auto made = ((decltype(&cuTensorMapEncodeTiled))found)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)source, extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS)
    printf("no tensor map: %d\n", made);
  return map;
}

template <bool WITH_LDMATRIX, Beside BESIDE>
void measure(const char *name, const char *source, int blocks) {
  auto f = kernel<WITH_LDMATRIX, BESIDE>;
  CUtensorMap map = tensor_map(source);
  float *out, ms;
  long long *clocks;
  cudaMalloc(&out, blocks * 256 * sizeof(float));
  cudaMalloc(&clocks, blocks * 16);
  cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  const int launches = 10;
  for (int round = 0; round < 2; round++) {
    cudaEventRecord(start);
    for (int i = 0; i < launches; i++)
      f<<<blocks, 384, SHARED>>>(source, out, clocks, 8192, map);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
  }
  cudaEventElapsedTime(&ms, start, stop);
  std::vector<long long> found(2 * blocks);
  cudaMemcpy(found.data(), clocks, blocks * 16, cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess) {
    printf("%s: failed\n", name);
    return;
  }
  std::vector<double> cycles, mhz;
  for (int i = 0; i < blocks; i++) {
    cycles.push_back(found[2 * i] / (STEPS * 128.0 * 2));  // two warps on a scheduler
    mhz.push_back(found[2 * i] * 1e3 / found[2 * i + 1]);
  }
  std::sort(cycles.begin(), cycles.end());
  std::sort(mhz.begin(), mhz.end());
  double flops = 2.0 * BM * BN * 64 * STEPS * blocks * launches;
  printf("%-46s %6.2f cycles  %6.1f TFLOP/s  %5.0f MHz\n", name, cycles[blocks / 2],
         flops / ms / 1e9, mhz[blocks / 2]);
}

int main() {
  int blocks;
  cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
  const size_t bytes = 160 << 20;
  std::vector<__half> numbers(bytes / 2);
  unsigned state = 1;
  for (auto &x : numbers) {
    state = state * 1664525u + 1013904223u;
    x = __float2half((state >> 16) / 16384.f - 2);
  }
  char *source;
  cudaMalloc(&source, bytes);
  cudaMemcpy(source, numbers.data(), bytes, cudaMemcpyHostToDevice);
  measure<false, NOTHING>("mma.sync", source, blocks);
  measure<true, NOTHING>("and ldmatrix", source, blocks);
  measure<true, WAITING>("and ldmatrix, four warps waiting", source, blocks);
  measure<true, COPIES>("and ldmatrix, cp.async", source, blocks);
  measure<true, TMA>("and ldmatrix, TMA by one thread", source, blocks);
  measure<true, TMA_RING>("and ldmatrix, TMA, a ring of mbarriers", source, blocks);
  measure<true, HALF>("and ldmatrix, half as many cp.async", source, blocks);
  measure<true, ZEROS>("and ldmatrix, cp.async that write zeros only", source, blocks);
  measure<true, SAME_ROWS>("and ldmatrix, cp.async of the same 16 rows", source, blocks);
  measure<true, PREFETCHES>("and ldmatrix, prefetch.global.L2", source, blocks);
  measure<true, LOADS>("and ldmatrix, ld.global.v4", source, blocks);
  measure<true, STORES>("and ldmatrix, st.shared.v4", source, blocks);
  measure<false, COPIES>("and cp.async", source, blocks);
}
