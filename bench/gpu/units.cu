// Kernels of units.py: each unit of a multiprocessor kept busy, or asked once, between two readings
// of the clock. The accumulators are stored only if `never` is not 0, so that nothing is left out.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ u32 shared_address(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}

// From the first warp's beginning to the last one's end: a scheduler may keep a warp waiting.
#define BEGIN                                                                                      \
  __shared__ u64 times[2];                                                                         \
  if (threadIdx.x == 0)                                                                            \
    times[0] = ~0ull, times[1] = 0;                                                                \
  __syncthreads();                                                                                 \
  u64 begin = now();
#define END                                                                                        \
  u64 end = now();                                                                                 \
  if (threadIdx.x % 32 == 0)                                                                       \
    atomicMin(times, begin), atomicMax(times + 1, end);                                            \
  __syncthreads();                                                                                 \
  if (threadIdx.x == 0)                                                                            \
    out[blockIdx.x] = times[1] - times[0];

// Instructions of the ordinary pipes: CHAINS independent ones, `turns` times 16.
#define ARITHMETIC(NAME, TYPE, CHAINS, CONSTRAINT, TEXT)                                           \
  extern "C" __global__ void NAME(u64 *out, int turns, int never) {                                \
    TYPE x[CHAINS], b = (TYPE)(never + 1), c = (TYPE)(never + 2);                                  \
    for (int i = 0; i < CHAINS; i++)                                                               \
      x[i] = (TYPE)(threadIdx.x + i);                                                              \
    BEGIN for (int t = 0; t < turns; t++) {                                                        \
      _Pragma("unroll") for (int r = 0; r < 16; r++) _Pragma("unroll") for (int i = 0; i < CHAINS; \
                                                                            i++)                   \
          asm volatile(TEXT : "+" CONSTRAINT(x[i]) : CONSTRAINT(b), CONSTRAINT(c));                \
    }                                                                                              \
    END if (never) for (int i = 0; i < CHAINS; i++) out[threadIdx.x + i] = (u64)x[i];              \
  }

ARITHMETIC(ffma_1, float, 1, "f", "fma.rn.f32 %0, %0, %1, %2;")
ARITHMETIC(ffma_8, float, 8, "f", "fma.rn.f32 %0, %0, %1, %2;")
ARITHMETIC(imad_1, int, 1, "r", "mad.lo.s32 %0, %0, %1, %2;")
ARITHMETIC(imad_8, int, 8, "r", "mad.lo.s32 %0, %0, %1, %2;")
ARITHMETIC(alu_1, int, 1, "r", "{max.s32 %0, %0, %1; xor.b32 %0, %0, %2;}")
ARITHMETIC(alu_8, int, 8, "r", "{max.s32 %0, %0, %1; xor.b32 %0, %0, %2;}")
ARITHMETIC(half2_8, u32, 8, "r", "fma.rn.f16x2 %0, %0, %1, %2;")
ARITHMETIC(mufu_1, float, 1, "f", "ex2.approx.ftz.f32 %0, %0;")
ARITHMETIC(mufu_8, float, 8, "f", "ex2.approx.ftz.f32 %0, %0;")
ARITHMETIC(dfma_8, double, 8, "d", "fma.rn.f64 %0, %0, %1, %2;")

// Shuffles.
extern "C" __global__ void shuffle_8(u64 *out, int turns, int never) {
  int x[8];
  for (int i = 0; i < 8; i++)
    x[i] = threadIdx.x + i;
  BEGIN for (int t = 0; t < turns; t++) {
#pragma unroll
    for (int r = 0; r < 16; r++)
#pragma unroll
      for (int i = 0; i < 8; i++)
        asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(x[i]));
  }
  END if (never) for (int i = 0; i < 8; i++) out[i] = x[i];
}

// Shared memory: loads of 4 or 16 bytes, `stride` bytes between lanes.
extern "C" __global__ void lds32(u64 *out, int turns, int never, int stride) {
  extern __shared__ __align__(1024) char s[];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x)
    ((u32 *)s)[i] = i;
  u32 at = shared_address(s) + threadIdx.x % 32 * stride, sum = 0;
  BEGIN for (int t = 0; t < turns; t++) {
    u32 v[16];
#pragma unroll
    for (int r = 0; r < 16; r++)
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[r]) : "r"(at + r * 256));
#pragma unroll
    for (int r = 0; r < 16; r++)
      sum ^= v[r];
  }
  END if (never) out[threadIdx.x] = sum;
}

extern "C" __global__ void lds128(u64 *out, int turns, int never, int stride) {
  extern __shared__ __align__(1024) char s[];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x)
    ((u32 *)s)[i] = i;
  u32 at = shared_address(s) + threadIdx.x % 32 * stride, sum = 0;
  BEGIN for (int t = 0; t < turns; t++) {
    u32 v[8][4];
#pragma unroll
    for (int r = 0; r < 8; r++)
      asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[r][0]), "=r"(v[r][1]), "=r"(v[r][2]), "=r"(v[r][3])
                   : "r"(at + r * 512));
#pragma unroll
    for (int r = 0; r < 8; r++)
      sum ^= v[r][0] ^ v[r][3];
  }
  END if (never) out[threadIdx.x] = sum;
}

extern "C" __global__ void sts128(u64 *out, int turns, int never, int stride) {
  extern __shared__ __align__(1024) char s[];
  u32 at = shared_address(s) + threadIdx.x % 32 * stride;
  BEGIN for (int t = 0; t < turns; t++) {
#pragma unroll
    for (int r = 0; r < 8; r++)
      asm volatile("st.volatile.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at + r * 512),
                   "r"(t)
                   : "memory");
  }
  END
}

extern "C" __global__ void ldmatrix4(u64 *out, int turns, int never, int stride) {
  u32 next = never;
  extern __shared__ __align__(1024) char s[];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x)
    ((u32 *)s)[i] = i;
  u32 at = shared_address(s) + threadIdx.x % 32 * stride, sum = 0;
  BEGIN for (int t = 0; t < turns; t++) {
    u32 v[8][4];
#pragma unroll
    for (int r = 0; r < 8; r++)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[r][0]), "=r"(v[r][1]), "=r"(v[r][2]), "=r"(v[r][3])
                   : "r"(at + r * 512)
                   : "memory");
#pragma unroll
    for (int r = 0; r < 8; r++)
      sum ^= v[r][0] ^ v[r][1] ^ v[r][2] ^ v[r][3];
    at += next; // 0, and ptxas does not know it: the same loads would be made once
  }
  END if (never) out[threadIdx.x] = sum;
}

extern "C" __global__ void shared_chase(u64 *out, int turns, int never) {
  __shared__ u32 s[64];
  if (threadIdx.x < 64)
    s[threadIdx.x] = shared_address(&s[(threadIdx.x + 1) % 64]);
  u32 p = shared_address(s);
  BEGIN for (int t = 0; t < turns * 16; t++) asm volatile("ld.volatile.shared.u32 %0, [%0];"
                                                         : "+r"(p));
  END if (never) out[0] = p;
}

// Global memory: a chain of addresses, `stride` bytes apart in `size` bytes.
extern "C" __global__ void make_chain(u64 *chain, u64 size, u64 stride) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i * stride < size)
    chain[i * stride / 8] = (u64)chain + (i + 1) * stride % size;
}

extern "C" __global__ void chase_l1(u64 *out, int turns, int never, u64 p) {
  for (int t = 0; t < 64; t++)
    asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory");
  BEGIN for (int t = 0; t < turns; t++) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(p)::"memory");
  END if (never) out[0] = p;
}

extern "C" __global__ void chase_l2(u64 *out, int turns, int never, u64 p) {
  BEGIN for (int t = 0; t < turns; t++) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p)::"memory");
  END if (never) out[0] = p;
}

// All of `count` 16-byte words, by a grid of any size, UNROLL loads of a thread in flight.
#define STREAM(NAME, UNROLL, LOAD, STORE)                                                          \
  extern "C" __global__ void NAME(uint4 *to, const uint4 *from, u64 count, int repeat,             \
                                  int never) {                                                     \
    uint4 sum = {0, 0, 0, 0};                                                                      \
    u64 step = (u64)gridDim.x * blockDim.x * UNROLL;                                               \
    for (int again = 0; again < repeat; again++)                                                   \
      for (u64 i = (u64)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; i < count; i += step) {    \
        uint4 v[UNROLL];                                                                           \
        _Pragma("unroll") for (int r = 0; r < UNROLL; r++) LOAD;                                   \
        _Pragma("unroll") for (int r = 0; r < UNROLL; r++) STORE;                                  \
      }                                                                                            \
    if (never)                                                                                     \
      to[0] = sum;                                                                                 \
  }
#define READ(OP)                                                                                   \
  asm volatile(OP " {%0,%1,%2,%3}, [%4];"                                                          \
               : "=r"(v[r].x), "=r"(v[r].y), "=r"(v[r].z), "=r"(v[r].w)                            \
               : "l"(from + i + r * blockDim.x))
#define ADD sum.x ^= v[r].x ^ v[r].y, sum.y ^= v[r].z ^ v[r].w

STREAM(read_1, 1, READ("ld.global.nc.v4.u32"), ADD)
STREAM(read_4, 4, READ("ld.global.nc.v4.u32"), ADD)
STREAM(read_cg, 4, READ("ld.global.cg.v4.u32"), ADD)
STREAM(write_4, 4, (v[r] = uint4{1, 2, 3, 4}), (to[i + r * blockDim.x] = v[r]))
STREAM(copy_1, 1, READ("ld.global.nc.v4.u32"), (to[i + r * blockDim.x] = v[r]))
STREAM(copy_4, 4, READ("ld.global.nc.v4.u32"), (to[i + r * blockDim.x] = v[r]))

// Hits in the L1 cache: a warp reads 512 bytes that it has read before.
extern "C" __global__ void read_l1(u64 *out, int turns, int never, const uint4 *from) {
  uint4 v[8];
  u32 sum = 0;
  const uint4 *p = from + threadIdx.x % 32;
  BEGIN for (int t = 0; t < turns; t++) {
#pragma unroll
    for (int r = 0; r < 8; r++)
      asm volatile("ld.global.ca.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[r].x), "=r"(v[r].y), "=r"(v[r].z), "=r"(v[r].w)
                   : "l"(p + 32 * r)
                   : "memory");
#pragma unroll
    for (int r = 0; r < 8; r++)
      sum ^= v[r].x ^ v[r].y ^ v[r].z ^ v[r].w;
    p += never;
  }
  END if (never) out[threadIdx.x] = sum;
}

// mma.sync.m16n8k16, CHAINS independent accumulators of a warp.
#define MMA(NAME, CHAINS)                                                                          \
  extern "C" __global__ void NAME(u64 *out, int turns, int never) {                                \
    float c[CHAINS][4] = {};                                                                       \
    u32 a[4], b[2];                                                                                \
    for (int i = 0; i < 4; i++)                                                                    \
      a[i] = 0x2e662e66 ^ (threadIdx.x * 2654435761u & 0x83ff83ff);                                \
    b[0] = a[1], b[1] = a[2];                                                                      \
    BEGIN for (int t = 0; t < turns; t++) {                                                        \
      _Pragma("unroll") for (int r = 0; r < 4; r++) _Pragma("unroll") for (int i = 0; i < CHAINS;  \
                                                                           i++)                    \
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "                        \
                       "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                     \
                       : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])                \
                       : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));        \
    }                                                                                              \
    END if (never) for (int i = 0; i < CHAINS; i++) out[threadIdx.x + i] = (u64)c[i][0];           \
  }
MMA(mma_1, 1)
MMA(mma_8, 8)

// Barriers.
extern "C" __global__ void barrier(u64 *out, int turns, int never) {
  BEGIN for (int t = 0; t < turns; t++) asm volatile("bar.sync 0;" ::: "memory");
  END
}

__device__ __forceinline__ void wait_for(u32 bar, u32 phase) {
  asm volatile("{\n .reg .pred p;\n again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
               " @!p bra again;\n}" ::"r"(bar), "r"(phase) : "memory");
}

extern "C" __global__ void mbarrier_trip(u64 *out, int turns, int never) {
  __shared__ u64 bar;
  u32 at = shared_address(&bar);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(blockDim.x) : "memory");
  BEGIN for (int t = 0; t < turns; t++) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    wait_for(at, t & 1);
  }
  END
}

// Bulk copies by the TMA unit: `stages` of `bytes` in flight, from a place of its own for a block.
extern "C" __global__ void tma(u64 *out, int turns, int never, const char *from, u64 size,
                               u64 apart, int bytes, int stages) {
  extern __shared__ __align__(1024) char s[];
  __shared__ u64 bars[16];
  u32 bar = shared_address(bars), to = shared_address(s);
  if (threadIdx.x == 0)
    for (int i = 0; i < stages; i++)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar + 8 * i) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  BEGIN if (threadIdx.x == 0) {
    u64 first = blockIdx.x * apart % size, at = first;
    int stage = 0, phase = 0;
    for (int t = 0; t < turns + stages; t++) {
      if (t >= stages)
        wait_for(bar + 8 * stage, phase ^ 1);
      if (t < turns) {
        asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(
                         bar + 8 * stage),
                     "r"(bytes)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                     "[%1], %2, [%3];" ::"r"(to + stage * bytes),
                     "l"(from + at), "r"(bytes), "r"(bar + 8 * stage)
                     : "memory");
        at = at + bytes < size ? at + bytes : 0;
      }
      if (++stage == stages)
        stage = 0, phase ^= 1;
    }
  }
  END
}

extern "C" __global__ void nothing(u64 *out) {}
