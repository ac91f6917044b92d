// Enough of CUDA for one thread block on a host: threads are fibres, barriers are where they change.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
struct ushort4 { unsigned short x, y, z, w; };
struct Index { unsigned x, y; };

namespace host {
constexpr int COUNT = 256, WARP = 32, STACK = 1 << 17;
struct Meeting { int arrived = 0; unsigned long turn = 0; };
inline ucontext_t scheduler, fibre[COUNT];
inline bool done[COUNT];
inline int current;
inline Meeting warps[COUNT / WARP], block;
inline unsigned char mailbox[COUNT][16];
alignas(16) inline unsigned char shared[1 << 16], ring[1 << 17];

inline void meet(Meeting& meeting, int members) {
  const unsigned long turn = meeting.turn;
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.turn;
    return;
  }
  while (meeting.turn == turn) swapcontext(&fibre[current], &scheduler);
}
inline void warp() { meet(warps[current / WARP], WARP); }

template <typename T>
T exchange(T value, int source_lane) {
  std::memcpy(mailbox[current], &value, sizeof(T));
  warp();
  T out;
  std::memcpy(&out, mailbox[current / WARP * WARP + source_lane], sizeof(T));
  warp();
  return out;
}
}  // namespace host

struct ThreadIndex { operator int() const { return host::current; } };
struct { ThreadIndex x; } threadIdx;
Index blockIdx{0, 0}, gridDim{1, 1};

inline void __syncthreads() { host::meet(host::block, host::COUNT); }
inline void __syncwarp() { host::warp(); }
inline void __threadfence() {}
template <typename T> T __ldg(const T* p) { return *p; }
template <typename T> T __ldcg(const T* p) { return *p; }
template <typename T> T __shfl_sync(unsigned, T v, int lane) { return host::exchange(v, lane % 32); }
template <typename T> T __shfl_xor_sync(unsigned, T v, int mask) {
  return host::exchange(v, (host::current % 32) ^ mask);
}
template <typename T> T __shfl_up_sync(unsigned, T v, int by) {
  const int lane = host::current % 32;
  return host::exchange(v, lane >= by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned, bool on) {
  host::mailbox[host::current][0] = on;
  host::warp();
  unsigned bits = 0;
  const int first = host::current / 32 * 32;
  for (int lane = 0; lane < 32; ++lane) bits |= unsigned(host::mailbox[first + lane][0]) << lane;
  host::warp();
  return bits;
}
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned atomicAdd(unsigned* p, unsigned by) { return *p += by, *p - by; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float cospif(float x) { return float(std::cos(M_PI * double(x))); }
using std::copysign;
using std::exp;
using std::log1p;
using std::fabs;
using std::fma;
using std::fmax;
using std::fmin;
using std::max;
using std::sqrt;
