// Runs the kernel's thread blocks, one after the other.
static ARGUMENTS arguments;

static void fibre_main() {
  KERNEL(arguments);
  host::done[host::current] = true;
  while (true) swapcontext(&host::fibre[host::current], &host::scheduler);
}

static void run_block() {
  std::memset(host::shared, 0xff, sizeof host::shared);  // on a card it holds anything
  std::memset(host::ring, 0xff, sizeof host::ring);
  static std::vector<char> stacks(size_t(host::COUNT) * host::STACK);
  for (int t = 0; t < host::COUNT; ++t) {
    getcontext(&host::fibre[t]);
    host::fibre[t].uc_stack.ss_sp = stacks.data() + size_t(t) * host::STACK;
    host::fibre[t].uc_stack.ss_size = host::STACK;
    host::fibre[t].uc_link = nullptr;
    host::done[t] = false;
    makecontext(&host::fibre[t], fibre_main, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (int t = 0; t < host::COUNT; ++t) {
      if (host::done[t]) continue;
      left = true;
      host::current = t;
      swapcontext(&host::scheduler, &host::fibre[t]);
    }
  }
}

extern "C" void launch(const ARGUMENTS* run, int grid) {
  arguments = *run;
  gridDim.x = grid;
  for (int block = 0; block < grid; ++block) {
    blockIdx.x = block;
    run_block();
  }
}
