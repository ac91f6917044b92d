// What stands before and after the matrix products of a map.
//
// split_rows: a row of float32 numbers, or of halves, as halves: x 2^e = high + low, with e such that the
// largest |x 2^e| of the row lies in [256, 512). high and low hold 22 bits of x; products of two such
// numbers without low.low are right to 2^-21, and the matrix units add them up in float32.
//
// finish: from sums of such products to what was asked for, in one pass. What is included is the body of
// a kernel's profile, a function of t = -rate |x - z|^2.

#include "vectors"

constexpr int THREADS = 256;

__device__ __forceinline__ float profile(float t) {
#include "profile"
}

__device__ __forceinline__ void put(float* p, float x) { *p = x; }
__device__ __forceinline__ void put(half_bits* p, float x) { *p = to_half(x); }

__device__ __forceinline__ float largest_of(const VALUE* p) {
  float v[4];
  load4(p, v);
  return fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3])));
}

struct Split {
  const VALUE* source;          // row i is source + positions[i] * stride, or source + i * stride
  const long long* positions;   // or null
  half_bits* out;               // row i begins at (i / group) group_stride + (i % group) row_stride
  float* inverse;               // (rows): 2^-e
  long long stride, columns, group, group_stride, row_stride;  // columns: a multiple of 4
  long long panel, expand;      // column q lies at (q / panel) panel expand + q % panel
  long long high, again, low;   // from there: high, a second copy of it, and low; -1: none
};

extern "C" __global__ void __launch_bounds__(THREADS) split_rows(const __grid_constant__ Split run) {
  __shared__ float largest[THREADS / 32];
  const long long row = blockIdx.x;
  const VALUE* x = run.source + (run.positions ? run.positions[row] : row) * run.stride;
  half_bits* out = run.out + (row / run.group) * run.group_stride + (row % run.group) * run.row_stride;
  const int columns = int(run.columns), panel = int(run.panel);
  float most = 0.0f;
#pragma unroll 4
  for (int q = threadIdx.x * 4; q < columns; q += THREADS * 4) most = fmaxf(most, largest_of(x + q));
  for (int reach = 16; reach; reach >>= 1) most = fmaxf(most, __shfl_xor_sync(ALL, most, reach));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
  __syncthreads();
  for (int w = 0; w < THREADS / 32; ++w) most = fmaxf(most, largest[w]);
  int exponent = 0;
  if (most > 0.0f && most < 3e38f) frexpf(most, &exponent);
  exponent = 9 - max(exponent, -100);
  const float scale = most > 0.0f ? ldexpf(1.0f, exponent) : 1.0f;
  if (threadIdx.x == 0) run.inverse[row] = 1.0f / scale;
#pragma unroll 4
  for (int q = threadIdx.x * 4; q < columns; q += THREADS * 4) {
    float v[4];
    load4(x + q, v);
    half_bits high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      high[i] = to_half(v[i] * scale);
      low[i] = to_half(v[i] * scale - from_half(high[i]));
    }
    half_bits* at = out + (long long)(q / panel) * panel * run.expand + q % panel;
    const ushort4 packed = {high[0], high[1], high[2], high[3]};
    *reinterpret_cast<ushort4*>(at + run.high) = packed;
    if (run.again >= 0) *reinterpret_cast<ushort4*>(at + run.again) = packed;
    if (run.low >= 0) *reinterpret_cast<ushort4*>(at + run.low) = {low[0], low[1], low[2], low[3]};
  }
}

struct Finish {
  const float* sums;            // row i begins at i * sums_stride
  const float* row_inverse;     // (rows)
  const float* column_inverse;  // (width)
  const float* left;            // (rows): |x|^2
  const float* right;           // (width): |z|^2, or phases in turns
  VALUE* out;                   // row i begins at i * stride
  long long width, sums_stride, stride;
  long long mode;               // 0: the product; 1: cosines; 2: kernel values of distances
  float amplitude;
  float rounding;               // times left + right: squared distances of less are 0
};

extern "C" __global__ void __launch_bounds__(THREADS) finish(const __grid_constant__ Finish run) {
  const long long row = blockIdx.x;
  const float scale = run.row_inverse[row];
  const float left = run.mode == 2 ? run.left[row] : 0.0f;
#pragma unroll 4
  for (long long q = blockIdx.y * THREADS + threadIdx.x; q < run.width; q += gridDim.y * THREADS) {
    float x = run.sums[row * run.sums_stride + q] * scale * run.column_inverse[q];
    if (run.mode == 1) {
      x += run.right[q];
      x = run.amplitude * cospif(2.0f * (x - rintf(x)));
    } else if (run.mode == 2) {
      const float right = run.right[q], t = 2.0f * x - left - right;
      x = profile(t > -run.rounding * (left + right) ? 0.0f : t) + (x - x);
    }
    put(run.out + row * run.stride + q, x);
  }
}
