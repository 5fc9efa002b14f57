// How fast mma.sync is beside what a GEMM does meanwhile, with nothing to wait for: the most that
// `ops.ampere_gemm` can reach on a card. sm_90a.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -O3 -o bound bench/gpu/mma_sync_bound.cu && ./bound
//
// Eight warps multiply as for a tile of 128 x 256 x 64 a step: 64 x 64 each, 128 instructions of
// m16n8k16 and 32 ldmatrix.x4, fragments loaded one block of K ahead, shared memory swizzled as in
// the kernel. Four other warps do what is named, 24 times a thread and step (48 KB by cp.async), two
// steps behind at most. All data is in shared memory from the start, so nobody waits for any.
// A scheduler needs 6 cycles for an instruction.

#include <algorithm>
#include <cstdio>
#include <cuda_fp16.h>
#include <vector>

enum Beside { NOTHING, WAITING, COPIES, HALF, ZEROS, SAME_ROWS, PREFETCHES, LOADS, STORES };

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

template <bool WITH_LDMATRIX>
__device__ float consume(unsigned base, volatile int *progress) {
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
  fetch(0, 0, 0);
  for (int step = 0, stage = 0; step < STEPS; step++) {
    int next = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (WITH_LDMATRIX)
        fetch(~k & 1, (k == 3 ? next : stage) * STAGE, (k + 1) % 4);
      int now = WITH_LDMATRIX ? k & 1 : 0;
#pragma unroll
      for (int i = 0; i < ATOMS_M; i++)
#pragma unroll
        for (int j = 0; j < ATOMS_N; j++)
          multiply(c[i][j], a[now][i], &b[now][j / 2][j % 2 * 2]);
    }
    stage = next;
    if (threadIdx.x == 0)
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

template <bool WITH_LDMATRIX, Beside BESIDE>
__global__ void __launch_bounds__(384, 1)
    kernel(const char *source, float *out, long long *clocks, long long ld) {
  extern __shared__ char shared[];
  __shared__ volatile int progress;
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
    if (BESIDE != NOTHING && produce<BESIDE>(base, &progress, source, ld) == 0x12345)
      out[0] = 1;
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  long long begun = clock64(), since, until;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since));
  float sum = consume<WITH_LDMATRIX>(base, &progress);
  long long ended = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(until));
  out[blockIdx.x * 256 + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    clocks[2 * blockIdx.x] = ended - begun;
    clocks[2 * blockIdx.x + 1] = until - since;
  }
}

template <bool WITH_LDMATRIX, Beside BESIDE>
void measure(const char *name, const char *source, int blocks) {
  auto f = kernel<WITH_LDMATRIX, BESIDE>;
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
      f<<<blocks, 384, SHARED>>>(source, out, clocks, 8192);
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
  measure<true, HALF>("and ldmatrix, half as many cp.async", source, blocks);
  measure<true, ZEROS>("and ldmatrix, cp.async that write zeros only", source, blocks);
  measure<true, SAME_ROWS>("and ldmatrix, cp.async of the same 16 rows", source, blocks);
  measure<true, PREFETCHES>("and ldmatrix, prefetch.global.L2", source, blocks);
  measure<true, LOADS>("and ldmatrix, ld.global.v4", source, blocks);
  measure<true, STORES>("and ldmatrix, st.shared.v4", source, blocks);
  measure<false, COPIES>("and cp.async", source, blocks);
}
