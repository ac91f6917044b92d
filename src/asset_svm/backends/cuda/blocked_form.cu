// The blocked exact form of Algorithm 1 on a card: one persistent kernel for a chunk of rows.
//
// The algebra, and the meaning of every scalar, is that of solvers/blocked_form.py. A chunk is cut into
// pieces of at most BLOCK rows, each inside one Gram block. For each piece:
//
//   margins   every thread block multiplies its own columns of coef with the piece's rows of V
//   (barrier over the grid)
//   steps     one thread block a model adds the partial margins up; its first warp takes the steps
//   (barrier)
//   update    every thread block adds a V to its own columns of coef, and of the average's sum
//   shrink    in a metric, by what is due (two more barriers where the metric has directions)
//
// The steps are a chain: margin, loss, length, margin of the next row. Only that is in the loop over
// rows. A lane owns four rows of every 128 and keeps their u in registers; u of the row after the next is
// broadcast a step before it is needed. While the first warp takes 32 steps, the others bring the rows of
// G for the next 32 into shared memory; eta, the products of the shrink factors, 1/c and the limit of the
// projection are prepared for 32 steps at a time, one a lane, and losses, slopes and the average are
// settled likewise. Projection and folding of c are rare: BATCH steps are taken as if there were none, and
// taken again with care where that was wrong.
//
// Precision: VALUE is how V is kept, REAL the type of margins and vectors. Scalars that live longer than
// a piece (c, b, |coef|^2, the sums of the average) are double; inside a piece b and |coef|^2 are a double
// base plus a REAL difference.

#include "vectors"
#include "loss"

constexpr int THREADS = 256, WARPS = 8, TILE = 128, LANES = 32;
constexpr int HALVES = BLOCK / 128, SLOTS = 4 * HALVES;
constexpr int BATCH = 8;

struct Run {
  const VALUE* V;             // row i of the chunk is V + positions[i] * stride
  const long long* positions;
  const REAL* gram;           // (blocks, BLOCK, BLOCK)
  const REAL* target;         // (K, chunk)
  const double* weight;       // (chunk), negative: no model sees the row
  const double* lam;          // (K) each, as are the next five
  const double* radius;
  const double* bound;
  const double* eta;
  const double* horizon;
  const double* parameter;    // of the loss
  REAL* direction;            // (K, columns): coef
  double* total;              // (K, columns)
  double* intercept;          // (K) each, as are the next four
  long long* steps;
  double* weight_sum;
  double* intercept_total;
  double* shrink_due;
  REAL* partial;              // (tiles, K, BLOCK)
  double* norms;              // (tiles, K)
  REAL* a;                    // (K, BLOCK)
  REAL* gained;               // (K, BLOCK)
  double* factors;            // (K, 4): c, alive, head, due
  REAL* slopes;               // (K, chunk)
  double* tally;              // (K, 4): loss, errors, active, not finite
  const REAL* metric_square;  // (columns), of a diagonal metric, or (directions)
  const REAL* directions;     // (columns, n_directions)
  const REAL* transposed;     // (n_directions, columns)
  REAL* along_partial;        // (tiles, K, n_directions)
  REAL* along;                // (K, n_directions)
  unsigned* arrived;          // 0 at the start
  long long stride, chunk, begin, end, piece, models, columns, tiles, n_directions, averages;
  double power, reach, rest_square;
};

__device__ __forceinline__ float least(float x, float y) { return fminf(x, y); }
__device__ __forceinline__ double least(double x, double y) { return fmin(x, y); }
__device__ __forceinline__ float most(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ double most(double x, double y) { return fmax(x, y); }
__device__ __forceinline__ float fused(float x, float y, float z) { return fmaf(x, y, z); }
__device__ __forceinline__ double fused(double x, double y, double z) { return fma(x, y, z); }

__device__ __forceinline__ double square(double x) { return x * x; }

__device__ void grid_barrier(const Run& run) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned ticket = atomicAdd(run.arrived, 1u);
    const unsigned goal = (ticket / gridDim.x + 1) * gridDim.x;
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(run.arrived) : "memory");
    } while (seen < goal);
    __threadfence();
  }
  __syncthreads();
}

// The steps of one model ----------------------------------------------------------------------------

struct alignas(16) Row {   // what the chain needs of a row
  REAL y, most, pull, limit;      // target, eta w, Loss::unit(y) / c, R^2 / c^2 - base of |coef|^2
  REAL c, diagonal, beside, shorten;  // after the shrink; G_kk, G_k,k+1, reach / (G_kk + 1)
};

struct Group {   // 32 rows, prepared while the 32 before them are stepped through
  Row row[LANES];
  double product[LANES], sum[LANES], eta[LANES];  // of shrink factors; of eta * product, this row's in
};

struct Shared {
  Group group[2];
  alignas(16) REAL u[BLOCK], a[BLOCK], gained[BLOCK];
  double before[BLOCK];
  double c_base, norm, omega, sum_base, alive, head, lam, radius, weight_scale;
  long long steps;          // j, before the group that is prepared next
  int first, segment;       // the row of lane 0; the lane from which c_base holds
  unsigned folds;           // lanes at whose row c leaves [0.1, 10]
};

__device__ double step_length(const Run& run, int k, double j) {
  if (run.horizon[k] > 0.0) return run.eta[k] * fmax(1.0 - (j - 1.0) / run.horizon[k], 0.0);
  if (run.power == 0.5) return run.eta[k] / sqrt(j);
  return run.power == 1.0 ? run.eta[k] / j : run.eta[k] / pow(j, run.power);
}

// Fill row[] from c_base and norm, and find where c must be folded.
__device__ __noinline__ void refresh(Shared& s, Group& group, int lane) {
  const double c = s.c_base * group.product[lane], inverse = 1.0 / c;
  Row& row = group.row[lane];
  row.c = REAL(c);
  row.pull = REAL(Loss::unit(row.y) * inverse);
  const double limit = square(s.radius * inverse) - s.norm;
  row.limit = REAL(fmin(limit, 1e37));
  const bool out = group.eta[lane] >= 0.0 && (fabs(c) < 0.1 || fabs(c) > 10.0);
  const unsigned folds = __ballot_sync(ALL, out);
  if (lane == 0) s.folds = folds;
  __syncwarp();
}

// The products of shrink factors from row ``from`` on, whose own factor is spent (-1: from the first).
__device__ __noinline__ void prepare(Group& group, double lam, int from, int lane) {
  const double eta = fmax(group.eta[lane], 0.0);
  double product = lane > from ? 1.0 - eta * lam : 1.0;
  for (int reach = 1; reach < LANES; reach <<= 1) {
    const double other = __shfl_up_sync(ALL, product, reach);
    if (lane >= reach) product *= other;
  }
  double sum = lane >= from ? eta * product : 0.0;
  for (int reach = 1; reach < LANES; reach <<= 1) {
    const double other = __shfl_up_sync(ALL, sum, reach);
    if (lane >= reach) sum += other;
  }
  group.product[lane] = product;
  group.sum[lane] = sum;
  __syncwarp();
}

// Put down what the sum of eta c was before each row of the open segment, up to row ``last``.
__device__ __noinline__ void note_before(Shared& s, const Group& group, int last, int lane) {
  if (lane >= s.segment && lane <= last) {
    const double until = lane ? group.sum[lane - 1] : 0.0;
    s.before[s.first + lane] = s.omega + s.c_base * (until - s.sum_base);
  }
  __syncwarp();
}

// |coef| > R after row ``l``: c = sign(c) R / |u|. The open segment ends with this row.
__device__ __noinline__ void project(Shared& s, Group& group, int l, double norm, int lane) {
  note_before(s, group, l, lane);
  const double c = s.c_base * group.product[l];
  // 1 / sqrt by its approximation and two steps of Newton's: no division, no square root.
  double root = rsqrtf(float(norm));
  root *= 1.5 - 0.5 * norm * root * root;
  root *= 1.5 - 0.5 * norm * root * root;
  const double moved = copysign(s.radius * root, c);
  const double until = l ? group.sum[l - 1] : 0.0;
  __syncwarp();
  if (lane == 0) {
    s.omega += s.c_base * (until - s.sum_base) + fmax(group.eta[l], 0.0) * moved;
    s.sum_base = group.sum[l];
    s.c_base = moved / group.product[l];
    s.norm = norm;
    s.segment = l + 1;
  }
  __syncwarp();
  refresh(s, group, lane);
}

// c of row ``l`` leaves [0.1, 10]: multiply it into u, a and coef_0. Returns the factor of u.
__device__ __noinline__ double fold(Shared& s, Group& group, int l, double norm, int lane) {
  note_before(s, group, l - 1, lane);
  const double c = s.c_base * group.product[l];
  const double omega = s.omega + s.c_base * ((l ? group.sum[l - 1] : 0.0) - s.sum_base);
  __syncwarp();
  for (int i = lane; i < s.first + l; i += LANES) {
    s.gained[i] += REAL(s.a[i] * (omega - s.before[i]));
    s.a[i] *= REAL(c);
    s.before[i] = 0.0;
  }
  if (lane == 0) {
    s.head += s.alive * omega;
    s.alive *= c;
    s.norm = norm * c * c;
    s.omega = s.sum_base = 0.0;
    s.c_base = 1.0;
    s.segment = l;
  }
  __syncwarp();
  prepare(group, s.lam, l, lane);
  refresh(s, group, lane);
  return c;
}

struct Chain {   // registers of every lane of the first warp
  REAL u[SLOTS];
  REAL now, next, f;              // u of this row; of the next, less this row's step; this row's margin
  REAL gain, shift;               // of |coef|^2 and of b, since their bases
  REAL my_f, my_a, my_length, my_shift;  // what this lane's row saw
};

__device__ __forceinline__ void scale_chain(Chain& c, REAL factor) {
#pragma unroll
  for (int q = 0; q < SLOTS; ++q) c.u[q] *= factor;
  c.now *= factor;
  c.next *= factor;
}

struct Fixed {   // what stays through a piece
  double b_base, limit;           // b before it, and the bound of |b|
  REAL bound, b_start, parameter;
  int lo, hi, lane;
};

__device__ __forceinline__ void load_shared4(const float* p, float* out) {
  const float4 v = *reinterpret_cast<const float4*>(p);
  out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}

__device__ __forceinline__ void load_shared4(const double* p, double* out) {
  const double2 v = *reinterpret_cast<const double2*>(p), w = *reinterpret_cast<const double2*>(p + 2);
  out[0] = v.x, out[1] = v.y, out[2] = w.x, out[3] = w.y;
}

// Row o + P of 32, the Pth of its batch, in half H of the block; ``rows``: the 32 rows of G; ``home``:
// the lane that owns the batch's first row. Returns whether coef may have left the ball.
// CAREFUL: projects after the row, and folds for the row after it, where that is due.
template <int H, int P, bool CAREFUL>
__device__ __forceinline__ bool one_step(
    Shared& s, Group& group, Chain& c, const Fixed& fixed, const REAL* rows, int home, int o) {
  const int l = o + P, lane = fixed.lane;
  const Row row = group.row[l];
  // the chain
  const REAL loss = Loss::excess(row.y, c.f, fixed.parameter);
  const REAL sign = Loss::turned(row.y, c.f, Loss::unit(row.y)), pull = Loss::turned(row.y, c.f, row.pull);
  const REAL steepness = Loss::steepness(row.y, c.f, fixed.parameter);
#if TRUNCATED
  const REAL taken = most(least(row.most * steepness, loss * row.shorten / steepness), REAL(0));
#else
  const REAL taken = loss > 0 ? row.most * steepness : REAL(0);
#endif
  const REAL a = taken * pull;
  c.gain = fused(a, fused(a, row.diagonal, c.now + c.now), c.gain);
  if (lane == l) c.my_f = c.f;
  c.now = fused(a, row.beside, c.next);
  c.shift = fused(taken, sign, c.shift);
  const REAL there = fixed.b_start + c.shift;
  const REAL b = most(least(there, fixed.bound), -fixed.bound);
  if (there != b) c.shift = b - fixed.b_start;
  c.f = fused(row.c, c.now, b);
  if (lane == l) c.my_a = a, c.my_length = taken, c.my_shift = c.shift;
  // beside the chain
#pragma unroll
  for (int h = H; h < HALVES; ++h) {
    REAL across[4];
    load_shared4(rows + l * BLOCK + h * 128 + lane * 4, across);
#pragma unroll
    for (int q = 0; q < 4; ++q) c.u[4 * h + q] = fused(a, across[q], c.u[4 * h + q]);
  }
  // u of the row after the next, from the lane that owns it
  constexpr int slot = (P + 2) % 4, beyond = H + 1 < HALVES ? 4 * (H + 1) : 4 * H;
  const bool crosses = P + 2 >= BATCH && home + BATCH / 4 == LANES;
  const REAL own = crosses ? c.u[beyond + slot] : c.u[4 * H + slot];
  c.next = __shfl_sync(ALL, own, crosses ? 0 : home + (P + 2) / 4);
  const bool outside = c.gain > row.limit;
  if (!CAREFUL) return outside;

  if (outside) {
    const double size = s.norm + double(c.gain), scale = s.c_base * group.product[l];
    if (scale * scale * size > square(s.radius)) {
      project(s, group, l, size, lane);
      c.gain = REAL(0);
      c.f = REAL(s.c_base * group.product[l]) * c.now + b;
    }
  }
  if (l < LANES - 1 && s.first + l + 1 < fixed.hi && (s.folds >> (l + 1) & 1u)) {
    if (lane <= l) s.a[s.first + lane] = c.my_a;
    __syncwarp();
    const REAL factor = REAL(fold(s, group, l + 1, s.norm + double(c.gain), lane));
    c.my_a = s.a[s.first + lane];
    c.gain = REAL(0);
    scale_chain(c, factor);
  }
  return false;
}

template <int H, int P>
__device__ __forceinline__ bool whole_batch(
    Shared& s, Group& group, Chain& c, const Fixed& fixed, const REAL* rows, int home, int o) {
  const bool outside = one_step<H, P, false>(s, group, c, fixed, rows, home, o);
  if constexpr (P + 1 < BATCH) return whole_batch<H, P + 1>(s, group, c, fixed, rows, home, o) || outside;
  return outside;
}

template <int H, int P>
__device__ __forceinline__ void careful_batch(
    Shared& s, Group& group, Chain& c, const Fixed& fixed, const REAL* rows, int home, int o, int from,
    int until) {
  if (o + P >= from && o + P < until) one_step<H, P, true>(s, group, c, fixed, rows, home, o);
  if constexpr (P + 1 < BATCH) careful_batch<H, P + 1>(s, group, c, fixed, rows, home, o, from, until);
}

// Rows [first, first + 32) of the Gram block, from column ``first & ~127`` on, by all warps but two.
__device__ __forceinline__ void bring_rows(const REAL* G, REAL* rows, int first) {
  constexpr int HELPERS = THREADS - 2 * LANES;
  const int begin = first & ~127, width = (BLOCK - begin) / 4;
#pragma unroll 4
  for (int i = threadIdx.x - 2 * LANES; i < LANES * width; i += HELPERS) {
    const int r = i / width, q = begin + i % width * 4;
    REAL v[4];
    load4(G + (first + r) * BLOCK + q, v);
#pragma unroll
    for (int j = 0; j < 4; ++j) rows[r * BLOCK + q + j] = v[j];
  }
}

struct Sums {   // of a lane, over its rows of a piece
  double travelled, b_sum, losses, errors, active, bad;
};

// All that is known of 32 rows before their steps; by the second warp.
__device__ void prepare_group(
    const Run& run, Shared& s, Group& group, const Fixed& fixed, const REAL* G, const REAL* target,
    const double* weight, int k, int first) {
  const int lane = fixed.lane, mine = first + lane;
  const bool here = mine >= fixed.lo && mine < fixed.hi;
  const double w = here ? weight[mine] : -1.0;
  const bool seen = here && w >= 0.0;
  const unsigned mask = __ballot_sync(ALL, seen);
  const long long step = s.steps + __popc(mask & (ALL >> (31 - lane)));
  const double eta = seen ? step_length(run, k, double(step)) : -1.0;
  Row& row = group.row[lane];
  row.y = here ? target[mine] : REAL(1);
  row.most = REAL(fmax(eta, 0.0) * fmax(w, 0.0));
  row.diagonal = here ? G[mine * BLOCK + mine] : REAL(0);
  row.beside = here && mine + 1 < fixed.hi ? G[mine * BLOCK + mine + 1] : REAL(0);
  row.shorten = REAL(run.reach) / (row.diagonal + (fixed.bound > 0 ? REAL(1) : REAL(0)));
  group.eta[lane] = eta;
  __syncwarp();
  if (lane == 0) s.steps += __popc(mask);
  prepare(group, s.lam, -1, lane);
}

// 32 steps, those of them that lie in the piece, by the first warp; H is the half of the block.
template <int H>
__device__ void take_group(
    Shared& s, Group& group, Chain& c, const Fixed& fixed, Sums& sums, const REAL* rows, REAL* slopes,
    int g) {
  const int lane = fixed.lane, lo = fixed.lo, hi = fixed.hi, first = H * 128 + g * LANES;
  if (lane == 0) {
    s.first = first;
    s.segment = 0;
    s.omega += s.weight_scale;
    s.sum_base = 0.0;
    s.norm += double(c.gain);
  }
  c.gain = REAL(0);
  __syncwarp();
  refresh(s, group, lane);
  const int from = lo > first ? lo - first : 0;
  const int until = hi < first + LANES ? hi - first : LANES;
  if (s.folds >> from & 1u) scale_chain(c, REAL(fold(s, group, from, s.norm, lane)));
  c.my_f = c.my_a = c.my_length = c.my_shift = REAL(0);
  for (int o = 0; o < LANES; o += BATCH) {
    const int home = (g * LANES + o) / 4;
    if (o >= from && o + BATCH <= until && !(s.folds >> o & ((2u << BATCH) - 1u))) {
      const Chain before = c;
      if (!whole_batch<H, 0>(s, group, c, fixed, rows, home, o)) continue;
      c = before;
    }
    careful_batch<H, 0>(s, group, c, fixed, rows, home, o, from, until);
  }
  // settle these 32 steps
  note_before(s, group, LANES - 1, lane);
  if (lane == 0) {
    s.weight_scale = s.c_base * (group.sum[LANES - 1] - s.sum_base);
    s.c_base *= group.product[LANES - 1];
  }
  __syncwarp();
  const int mine = first + lane;
  if (mine >= lo && mine < hi) {
    const Row& row = group.row[lane];
    const double eta = group.eta[lane];
    s.a[mine] = c.my_a;
    const REAL loss = Loss::excess(row.y, c.my_f, fixed.parameter);
    const REAL slope = loss > 0 ? -Loss::turned(row.y, c.my_f, Loss::unit(row.y)) : REAL(0);
    const REAL part = row.most > 0 ? c.my_length / row.most : Loss::steepness(row.y, c.my_f, fixed.parameter);
    const bool seen = eta >= 0.0;
    slopes[mine] = seen ? slope * part : REAL(0);
    if (seen) {
      sums.travelled += eta;
      sums.b_sum += eta * fmin(fmax(fixed.b_base + double(c.my_shift), -fixed.limit), fixed.limit);
      sums.losses += most(loss, REAL(0));
      sums.errors += row.y * c.my_f <= 0 && Loss::unit(row.y) != 0 ? 1.0 : 0.0;
      sums.active += slope * part != 0 ? 1.0 : 0.0;
      sums.bad += c.my_f - c.my_f == 0 ? 0.0 : 1.0;
    }
  }
  __syncwarp();
}

// All steps of a piece for model k; ``ring`` holds twice 32 rows of G.
__device__ void take_steps(const Run& run, Shared& s, REAL* ring, int k, long long at, int count) {
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  const bool leads = warp == 0;
  const int lo = int(at % BLOCK), hi = lo + count, start = lo / LANES * LANES;
  const REAL* G = run.gram + (at / BLOCK) * (long long)(BLOCK) * BLOCK;
  const long long block = at - lo;                       // the chunk's row of the Gram block's first
  const REAL* target = run.target + k * run.chunk + block;
  const double* weight = run.weight + block;
  REAL* slopes = run.slopes + k * run.chunk + block;
  const double b_base = run.intercept[k], limit = run.bound[k];
  const Fixed fixed = {b_base, limit, REAL(limit), REAL(b_base), REAL(run.parameter[k]), lo, hi, lane};
  Chain c = {};
  Sums sums = {};
  if (leads) {
    double norm = 0.0;
    for (long long tile = lane; tile < run.tiles; tile += LANES)
      norm += __ldcg(run.norms + tile * run.models + k);
    norm = warp_sum(norm);
    if (lane == 0) {
      s.c_base = s.alive = 1.0;
      s.head = s.omega = s.sum_base = s.weight_scale = 0.0;
      s.norm = norm;
      s.radius = run.radius[k];
    }
#pragma unroll
    for (int q = 0; q < SLOTS; ++q) {
      const int i = (q / 4) * 128 + lane * 4 + q % 4;
      c.u[q] = i >= lo && i < hi ? s.u[i] : REAL(0);
      s.a[i] = s.gained[i] = REAL(0);
      s.before[i] = 0.0;
    }
    c.now = s.u[lo];
    c.next = lo + 1 < hi ? s.u[lo + 1] : REAL(0);
    c.f = c.now + fixed.b_start;                         // c is 1
    __syncwarp();
  } else if (warp == 1) {
    if (lane == 0) {
      s.steps = run.steps[k];
      s.lam = run.n_directions >= 0 ? 0.0 : run.lam[k];  // in a metric the shrink comes after the piece
    }
    __syncwarp();
    prepare_group(run, s, s.group[start / LANES % 2], fixed, G, target, weight, k, start);
  } else {
    bring_rows(G, ring + start / LANES % 2 * LANES * BLOCK, start);
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < HALVES; ++h) {
    for (int g = 0; g < 4; ++g) {
      const int first = h * 128 + g * LANES, ahead = first + LANES, held = first / LANES % 2;
      if (first < start || first >= hi) continue;
      const REAL* rows = ring + held * LANES * BLOCK;
      if (leads && h == 0) take_group<0>(s, s.group[held], c, fixed, sums, rows, slopes, g);
      if (leads && h > 0) take_group<HALVES - 1>(s, s.group[held], c, fixed, sums, rows, slopes, g);
      if (!leads && ahead < hi) {
        Group& group = s.group[1 - held];
        if (warp == 1) prepare_group(run, s, group, fixed, G, target, weight, k, ahead);
        else bring_rows(G, ring + (1 - held) * LANES * BLOCK, ahead);
      }
      __syncthreads();
    }
  }
  if (!leads) return;
  const double travelled = warp_sum(sums.travelled), b_sum = warp_sum(sums.b_sum);
  const double losses = warp_sum(sums.losses), errors = warp_sum(sums.errors);
  const double active = warp_sum(sums.active), bad = warp_sum(sums.bad);
  const double omega = s.omega + s.weight_scale;
  for (int i = lo + lane; i < hi; i += LANES) {
    run.a[k * BLOCK + i - lo] = s.a[i];
    run.gained[k * BLOCK + i - lo] = s.gained[i] + REAL(s.a[i] * (omega - s.before[i]));
  }
  if (lane == 0) {
    const double b = b_base + double(c.shift);
    run.intercept[k] = fmin(fmax(b, -limit), limit);
    run.steps[k] = s.steps;
    const double due = (at % run.piece ? run.shrink_due[k] : 0.0) + travelled;
    run.shrink_due[k] = due;
    if (run.averages) {
      run.weight_sum[k] += travelled;
      run.intercept_total[k] += b_sum;
    }
    double* factors = run.factors + 4 * k;
    factors[0] = s.c_base;
    factors[1] = s.alive;
    factors[2] = s.head + s.alive * omega;
    factors[3] = due;
    double* tally = run.tally + 4 * k;
    tally[0] += losses, tally[1] += errors, tally[2] += active, tally[3] += bad;
  }
}

// Products with rows of V ----------------------------------------------------------------------------

template <int GROUP>
__device__ void margins(const Run& run, long long at, int count, int k0) {
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  const int models = int(run.models) - k0 < GROUP ? int(run.models) - k0 : GROUP;
  for (long long tile = blockIdx.x; tile < run.tiles; tile += gridDim.x) {
    const long long column = tile * TILE + lane * 4;
    REAL coef[GROUP][4];
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
      for (int q = 0; q < 4; ++q)
        coef[k][q] = k < models ? run.direction[(k0 + k) * run.columns + column + q] : REAL(0);
      if (warp == 0) {
        double size = 0.0;
        for (int q = 0; q < 4; ++q) size += double(coef[k][q]) * double(coef[k][q]);
        size = warp_sum(size);
        if (lane == 0 && k < models) run.norms[tile * run.models + k0 + k] = size;
      }
    }
#pragma unroll 8
    for (int r = warp; r < count; r += WARPS) {
      REAL v[4];
      load4(run.V + __ldg(run.positions + at + r) * run.stride + column, v);
#pragma unroll
      for (int k = 0; k < GROUP; ++k) {
        REAL dot = coef[k][0] * v[0];
        for (int q = 1; q < 4; ++q) dot = fused(coef[k][q], v[q], dot);
        dot = warp_sum(dot);
        if (lane == 0 && k < models) run.partial[(tile * run.models + k0 + k) * BLOCK + r] = dot;
      }
    }
  }
}

struct Pending {   // a and what the average gains, of a group of models
  REAL a[4][BLOCK], gained[4][BLOCK];
  REAL sums[2][WARPS][TILE];
  REAL coef[TILE];
};

// coef = c (alive coef + a V), the average's sum += head coef + gained V, on this block's columns.
template <int GROUP>
__device__ void update(const Run& run, Pending& s, long long at, int count, int k0, bool shrink) {
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  const int models = int(run.models) - k0 < GROUP ? int(run.models) - k0 : GROUP;
  __syncthreads();
  for (int i = threadIdx.x; i < GROUP * count; i += THREADS) {
    const int k = i / count, r = i % count;
    s.a[k][r] = k < models ? __ldcg(run.a + (k0 + k) * BLOCK + r) : REAL(0);
    s.gained[k][r] = k < models && run.averages ? __ldcg(run.gained + (k0 + k) * BLOCK + r) : REAL(0);
  }
  __syncthreads();
  for (long long tile = blockIdx.x; tile < run.tiles; tile += gridDim.x) {
    const long long column = tile * TILE + lane * 4;
    REAL moved[GROUP][4] = {}, summed[GROUP][4] = {};
#pragma unroll 8
    for (int r = warp; r < count; r += WARPS) {
      REAL v[4];
      load4(run.V + __ldg(run.positions + at + r) * run.stride + column, v);
#pragma unroll
      for (int k = 0; k < GROUP; ++k) {
        const REAL a = s.a[k][r], gained = s.gained[k][r];
        for (int q = 0; q < 4; ++q) moved[k][q] = fused(a, v[q], moved[k][q]);
        for (int q = 0; q < 4; ++q) summed[k][q] = fused(gained, v[q], summed[k][q]);
      }
    }
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
      if (k >= models) break;
      for (int q = 0; q < 4; ++q) {
        s.sums[0][warp][lane * 4 + q] = moved[k][q];
        s.sums[1][warp][lane * 4 + q] = summed[k][q];
      }
      __syncthreads();
      if (threadIdx.x < TILE) {
        const int own = threadIdx.x;
        REAL step = REAL(0), gained = REAL(0);
        for (int w = 0; w < WARPS; ++w) step += s.sums[0][w][own], gained += s.sums[1][w][own];
        const long long index = (k0 + k) * run.columns + tile * TILE + own;
        const double* factors = run.factors + 4 * (k0 + k);
        const double coef = run.direction[index];
        if (run.averages) run.total[index] += __ldcg(factors + 2) * coef + double(gained);
        double moved_coef = __ldcg(factors) * (__ldcg(factors + 1) * coef + double(step));
        if (shrink && run.n_directions == 0) {
          const double amount = run.lam[k0 + k] * __ldcg(factors + 3);
          moved_coef *= exp(-amount * double(run.metric_square[tile * TILE + own]));
        }
        run.direction[index] = REAL(moved_coef);
        s.coef[own] = REAL(moved_coef);
      }
      __syncthreads();
      if (shrink && run.n_directions > 0) {  // what these columns bring to coef U
        const int n = int(run.n_directions);
        for (int q = threadIdx.x; q < n; q += THREADS) {
          REAL part = REAL(0);
#pragma unroll 8
          for (int c = 0; c < TILE; ++c) part = fused(s.coef[c], __ldg(run.directions + (tile * TILE + c) * n + q), part);
          run.along_partial[(tile * run.models + k0 + k) * n + q] = part;
        }
        __syncthreads();
      }
    }
  }
}

// coef exp(-amount T^2) for T = rest + U diag(scale - rest) U^T, once coef U lies in parts.
__device__ void shrink_along(const Run& run) {
  const long long n = run.n_directions, entries = run.models * n;
  grid_barrier(run);
  for (long long e = blockIdx.x * THREADS + threadIdx.x; e < entries; e += (long long)(gridDim.x) * THREADS) {
    REAL sum = REAL(0);
    for (long long tile = 0; tile < run.tiles; ++tile) sum += __ldcg(run.along_partial + tile * entries + e);
    const double amount = run.lam[e / n] * __ldcg(run.factors + 4 * (e / n) + 3);
    const double change = exp(-amount * double(run.metric_square[e % n])) - exp(-amount * run.rest_square);
    run.along[e] = REAL(double(sum) * change);
  }
  grid_barrier(run);
  for (long long tile = blockIdx.x; tile < run.tiles; tile += gridDim.x) {
    for (int i = threadIdx.x; i < run.models * TILE; i += THREADS) {
      const long long k = i / TILE, column = tile * TILE + i % TILE;
      const double amount = run.lam[k] * __ldcg(run.factors + 4 * k + 3);
      REAL sum = REAL(exp(-amount * run.rest_square)) * run.direction[k * run.columns + column];
#pragma unroll 8
      for (long long q = 0; q < n; ++q)
        sum = fused(__ldcg(run.along + k * n + q), __ldg(run.transposed + q * run.columns + column), sum);
      run.direction[k * run.columns + column] = sum;
    }
  }
  __syncthreads();
}

__device__ void steps_of_model(const Run& run, Shared& s, REAL* ring, int k, long long at, int count) {
  const int lo = int(at % BLOCK);
  __syncthreads();
  for (int r = threadIdx.x; r < count; r += THREADS) {
    REAL sum = REAL(0);
#pragma unroll 16
    for (long long tile = 0; tile < run.tiles; ++tile)
      sum += __ldcg(run.partial + (tile * run.models + k) * BLOCK + r);
    s.u[lo + r] = sum;
  }
  __syncthreads();
  take_steps(run, s, ring, k, at, count);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) run_blocks(const __grid_constant__ Run run) {
  extern __shared__ __align__(16) REAL ring[];
  __shared__ union {
    Shared steps;
    Pending pending;
  } s;
  for (long long at = run.begin; at < run.end;) {
    long long stop = (at / run.piece + 1) * run.piece;
    if (stop > run.end) stop = run.end;
    const int count = int(stop - at);
    if (run.models == 1) margins<1>(run, at, count, 0);
    else for (int k = 0; k < run.models; k += 4) margins<4>(run, at, count, k);
    grid_barrier(run);
    for (int k = blockIdx.x; k < run.models; k += gridDim.x) steps_of_model(run, s.steps, ring, k, at, count);
    grid_barrier(run);
    const bool shrink = run.n_directions >= 0 && stop % run.piece == 0;
    if (run.models == 1) update<1>(run, s.pending, at, count, 0, shrink);
    else for (int k = 0; k < run.models; k += 4) update<4>(run, s.pending, at, count, k, shrink);
    if (shrink && run.n_directions > 0) shrink_along(run);
    __syncthreads();
    at = stop;
  }
}
