// Coordinate ascent on the duals of many cells: one thread block a cell and model.
//
// The algorithm, its order of visits and its stopping rule are those of solvers/exact_form.py: sweeps
// over all coordinates in random order, each set to its maximum, F = K beta kept up to date, until the
// duality gap is small, or sweeps or changes are used up.
//
// Visits are a chain, but only those that change a beta count in it: every warp looks at the same 32
// visits ahead, a lane each, finds the first one that changes something, and what lies before it is
// done with. The change adds a row of K to F, which all threads of the block share. The row is on its
// way before the block agrees that everybody has looked at F.
//
// K has the ridge of the loss, curvature / cost, on its diagonal.
//
// F, beta and the order of visits lie in shared memory, or, for cells too large for it, in scratch
// memory. beta and the objectives are double; REAL is the type of K and F.

#include "vectors"
#include "loss"

constexpr int THREADS = 256, WARPS = 8, LANES = 32;
constexpr int AHEAD = 2;  // parts of a row of K, of four numbers a thread, that are loaded at a time
constexpr int BLOCKS = sizeof(REAL) == 4 ? 4 : 2;  // of a multiprocessor, at a time: the others hide waits

struct Run {
  const long long* matrix;  // (cells): the address of K, of `stride` numbers a row
  const long long* size;    // (cells): m
  const long long* stride;  // (cells): a multiple of 4, at least m
  const long long* first;   // (cells): where the cell's rows begin in the arrays of rows; a multiple of 4
  const double* y;          // (models, rows)
  const double* cost;       // (rows)
  const double* parameter;  // (models): of the loss
  const int* wanted;        // (cells, models): 0: left alone
  const long long* seed;    // (cells)
  double* beta;             // (models, rows): 0 at the start
  double* found;            // (cells, models, 3): sweeps, P, D
  unsigned char* scratch;   // for cells beyond shared_rows: (cells, models, scratch_bytes)
  long long models, rows, most, shared_rows, scratch_bytes;
  double tube, curvature, tol, budget;  // budget: times m^2
};

struct Sums {
  double square, bent, loss, linear;
};

// to[j] += a x[j] of four neighbours, in accesses of 16 bytes: single ones would meet in the same banks.
__device__ __forceinline__ void add4(float* to, float a, const float* x) {
  float4* p = reinterpret_cast<float4*>(to);
  const float4 v = *p;
  *p = {fmaf(a, x[0], v.x), fmaf(a, x[1], v.y), fmaf(a, x[2], v.z), fmaf(a, x[3], v.w)};
}

__device__ __forceinline__ void add4(double* to, double a, const double* x) {
  double2* p = reinterpret_cast<double2*>(to);
  const double2 v = p[0], w = p[1];
  p[0] = {fma(a, x[0], v.x), fma(a, x[1], v.y)};
  p[1] = {fma(a, x[2], w.x), fma(a, x[3], w.y)};
}

// The sum over the block, in every thread.
__device__ Sums block_sum(Sums mine) {
  __shared__ Sums part[WARPS];
  mine.square = warp_sum(mine.square);
  mine.bent = warp_sum(mine.bent);
  mine.loss = warp_sum(mine.loss);
  mine.linear = warp_sum(mine.linear);
  __syncthreads();
  if (threadIdx.x % LANES == 0) part[threadIdx.x / LANES] = mine;
  __syncthreads();
  Sums all = {};
  for (int w = 0; w < WARPS; ++w) {
    all.square += part[w].square;
    all.bent += part[w].bent;
    all.loss += part[w].loss;
    all.linear += part[w].linear;
  }
  return all;
}

// One model of one cell, and what its threads share.
struct Cell {
  const REAL* K;
  const double* y;
  const double* cost;
  int m, stride;
  double* beta;
  REAL* F;
  unsigned short* order;

  __device__ Sums objectives(double parameter, double tube, double curvature) const {
    Sums mine = {};
    for (int i = threadIdx.x; i < m; i += THREADS) {
      const double b = beta[i], t = y[i], bent = b == 0.0 ? 0.0 : curvature / cost[i] * b, f = F[i] - bent;
      mine.square += b * F[i];
      mine.bent += b * bent;
      mine.loss += cost[i] * fmax(Loss::excess(t, f, parameter), 0.0);
      mine.linear += t * b - tube * fabs(b);
    }
    return block_sum(mine);
  }

  // Fisher and Yates, by a linear congruential generator; by one thread.
  __device__ long long shuffle(long long state) const {
    for (int k = m - 1; k > 0; --k) {
      state = (state * 1103515245LL + 12345LL) & 0x7fffffffLL;
      const int r = int(unsigned(state >> 8) % unsigned(k + 1));
      const unsigned short kept = order[k];
      order[k] = order[r];
      order[r] = kept;
    }
    return state;
  }

  // beta_i = fresh, F += moved K_i; called by the whole block.
  __device__ void change(int i, double fresh, REAL moved) const {
    const REAL* row = K + (long long)i * stride;
    for (int base = threadIdx.x * 4; base - int(threadIdx.x) * 4 < m; base += AHEAD * THREADS * 4) {
      REAL part[AHEAD][4];
#pragma unroll
      for (int p = 0; p < AHEAD; ++p) {
        const int q = base + p * THREADS * 4;
        if (q < m) load4(row + q, part[p]);
      }
      if (base < THREADS * 4) {
        __syncthreads();  // everybody has looked at F
        if (threadIdx.x == 0) beta[i] = fresh;
      }
#pragma unroll
      for (int p = 0; p < AHEAD; ++p) {
        const int q = base + p * THREADS * 4;
        if (q >= m) break;
        add4(F + q, moved, part[p]);
      }
    }
    __syncthreads();
  }

  // All coordinates in the order at hand; returns the number of changes.
  __device__ int sweep(double parameter, double tube) const {
    const int lane = threadIdx.x % LANES;
    int moves = 0;
    for (int base = 0; base < m; base += LANES) {
      const bool there = base + lane < m;
      const int i = there ? order[base + lane] : 0;
      const double b = beta[i], t = y[i];
      const double least = Loss::low(cost[i], t, parameter), most = Loss::high(cost[i], t, parameter);
      const double step = 1.0 / fmax(double(__ldg(K + (long long)i * stride + i)), 1e-12);
      unsigned left = ALL;  // visits that are still to come
      while (true) {
        double fresh = b - (double(F[i]) - t) * step;
        if (tube > 0.0) fresh = copysign(fmax(fabs(fresh) - tube * step, 0.0), fresh);
        fresh = fmin(fmax(fresh, least), most);
        const unsigned who = __ballot_sync(ALL, there && fresh != b) & left;
        if (who == 0) break;
        const int source = __ffs(who) - 1;
        left = source == LANES - 1 ? 0u : ALL << (source + 1);
        const REAL moved = REAL(__shfl_sync(ALL, fresh - b, source));
        change(__shfl_sync(ALL, i, source), __shfl_sync(ALL, fresh, source), moved);
        ++moves;
      }
    }
    return moves;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) solve_cells(const __grid_constant__ Run run) {
  extern __shared__ __align__(16) unsigned char memory[];
  const long long place = blockIdx.x, c = place / run.models, model = place % run.models;
  if (!run.wanted[place]) return;
  Cell cell;
  cell.m = int(run.size[c]), cell.stride = int(run.stride[c]);
  cell.K = reinterpret_cast<const REAL*>(run.matrix[c]);
  cell.y = run.y + model * run.rows + run.first[c];
  cell.cost = run.cost + run.first[c];
  unsigned char* held = cell.m <= run.shared_rows ? memory : run.scratch + place * run.scratch_bytes;
  const int padded = (cell.m + 3) / 4 * 4;
  cell.beta = reinterpret_cast<double*>(held);
  cell.F = reinterpret_cast<REAL*>(cell.beta + padded);
  cell.order = reinterpret_cast<unsigned short*>(cell.F + padded);
  for (int i = threadIdx.x; i < padded; i += THREADS) {
    cell.beta[i] = 0.0;
    cell.F[i] = REAL(0);
    cell.order[i] = (unsigned short)i;
  }
  __syncthreads();
  const double parameter = run.parameter[model], most_moves = run.budget * double(cell.m) * double(cell.m);
  long long sweeps = 0, moves = 0, state = run.seed[c];
  double primal, dual;
  while (true) {
    const Sums sums = cell.objectives(parameter, run.tube, run.curvature);
    primal = sums.loss + 0.5 * (sums.square - sums.bent);
    dual = sums.linear - 0.5 * sums.square;
    if (sweeps >= run.most || double(moves) > most_moves) break;
    if (sweeps > 0 && primal - dual <= run.tol * primal) break;
    if (threadIdx.x == 0) state = cell.shuffle(state);
    __syncthreads();
    moves += cell.sweep(parameter, run.tube);
    ++sweeps;
  }
  double* beta = run.beta + model * run.rows + run.first[c];
  for (int i = threadIdx.x; i < cell.m; i += THREADS) beta[i] = cell.beta[i];
  if (threadIdx.x == 0) {
    double* found = run.found + 3 * place;
    found[0] = double(sweeps), found[1] = primal, found[2] = dual;
  }
}
