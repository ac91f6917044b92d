// Halves, four neighbouring values of what a kernel only reads, and sums over a warp: what all sources share.

typedef unsigned short half_bits;
constexpr unsigned ALL = 0xffffffffu;

__device__ __forceinline__ void load4(const float* p, float* out) {
  const float4 v = __ldg(reinterpret_cast<const float4*>(p));
  out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}

__device__ __forceinline__ void load4(const double* p, double* out) {
  const double2 v = __ldg(reinterpret_cast<const double2*>(p));
  const double2 w = __ldg(reinterpret_cast<const double2*>(p + 2));
  out[0] = v.x, out[1] = v.y, out[2] = w.x, out[3] = w.y;
}

__device__ __forceinline__ float from_half(half_bits h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}

__device__ __forceinline__ half_bits to_half(float f) {
  half_bits h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

__device__ __forceinline__ void load4(const half_bits* p, float* out) {
  const ushort4 v = __ldg(reinterpret_cast<const ushort4*>(p));
  out[0] = from_half(v.x), out[1] = from_half(v.y), out[2] = from_half(v.z), out[3] = from_half(v.w);
}

template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int reach = 16; reach; reach >>= 1) x += __shfl_xor_sync(ALL, x, reach);
  return x;
}
