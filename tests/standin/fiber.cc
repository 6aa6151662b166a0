/* fiber.cc - threads of a block as fibers: each runs until it waits for others. A fiber whose thread ends
 * continues with the next thread, so a kernel without barriers needs only one fiber and never switches. */
#include "tests/standin/fiber.h"
#include "tests/standin/kernel.h"

#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define STANDIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STANDIN_ASAN 1
#endif
#endif
#ifdef STANDIN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STANDIN_UNCHECKED __attribute__((no_sanitize("address"))) /* it never returns from its frame */
#else
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define STANDIN_UNCHECKED
#endif

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr size_t STACK_BYTES = 256 << 10;

/* The point where a stack resumes. Uses the compiler's builtins: the library's longjmp forbids other stacks
 * (fortified), or queries the system's signal stack at every switch (under sanitizers). */
typedef void *place[5];

enum state { UNBORN, READY, AT_BLOCK, AT_WARP, GONE };

struct lane {
    state now;
    unsigned mask; /* AT_WARP: with whom */
    int fiber;
};

/* Copies that a thread has started and not waited for. */
struct copies {
    struct copy {
        void *to;
        const void *from;
    };
    std::vector<copy> open; /* not committed */
    std::vector<std::vector<copy>> group;
};

struct warp {
    unsigned exists, gone;
    unsigned char pending[32 * STANDIN_SLOT], shown[32 * STANDIN_SLOT];
};

struct fiber {
    unsigned char *stack;
    place here;
    bool born;
    int lane; /* lane that it runs; -1: idle */
    ~fiber() {
        ASAN_UNPOISON_MEMORY_REGION(stack, STACK_BYTES);
        munmap(stack, STACK_BYTES);
    }
};

struct runner { /* state of one stream's thread */
    place home;
    const std::function<void()> *thread;
    int n, started, gone, at_block;
    bool backwards, late;
    std::vector<lane> lanes;
    std::vector<copies> copying; /* delayed copies, by lane */
    std::vector<warp> warps;
    std::vector<std::unique_ptr<fiber>> fibers;
    std::vector<int> ready, idle; /* lanes, taken from the end; fibers */
    int current;                  /* fiber */
    void *asan_home, *asan_fiber; /* fake stacks */
    const void *home_stack;
    size_t home_bytes;
};

thread_local std::unique_ptr<runner> mine;

/* --- switching stacks --- */

void leave_home(runner *r, const fiber *to) {
#ifdef STANDIN_ASAN
    __sanitizer_start_switch_fiber(&r->asan_home, to->stack, STACK_BYTES);
#else
    (void)r, (void)to;
#endif
}

void back_home(runner *r) {
#ifdef STANDIN_ASAN
    __sanitizer_finish_switch_fiber(r->asan_home, nullptr, nullptr);
#else
    (void)r;
#endif
}

void enter_fiber(runner *r, void *fake) {
#ifdef STANDIN_ASAN
    __sanitizer_finish_switch_fiber(fake, &r->home_stack, &r->home_bytes);
#else
    (void)r, (void)fake;
#endif
}

void leave_fiber(runner *r, void **fake) {
#ifdef STANDIN_ASAN
    __sanitizer_start_switch_fiber(fake, r->home_stack, r->home_bytes);
#else
    (void)r, (void)fake;
#endif
}

/* Never returns, which must be hidden from the sanitizers. */
STANDIN_UNCHECKED __attribute__((noinline)) void go(place to) {
    __builtin_longjmp(to, 1);
}

__attribute__((noinline)) void go_home(runner *r) {
    fiber *f = r->fibers[(size_t)r->current].get();
    void *fake = nullptr;
    leave_fiber(r, &fake);
    if (__builtin_setjmp(f->here) == 0) go(r->home);
    enter_fiber(r, fake);
}

void fiber_main();

STANDIN_UNCHECKED __attribute__((noinline)) void be_born(fiber *f) {
    ucontext_t c;
    getcontext(&c);
    c.uc_stack.ss_sp = f->stack;
    c.uc_stack.ss_size = STACK_BYTES;
    c.uc_link = nullptr;
    makecontext(&c, fiber_main, 0);
    setcontext(&c);
}

__attribute__((noinline)) void resume(runner *r, int which) {
    fiber *f = r->fibers[(size_t)which].get();
    const bool born = f->born;
    r->current = which;
    f->born = true;
    leave_home(r, f);
    if (__builtin_setjmp(r->home) == 0) {
        if (born) go(f->here);
        be_born(f);
    }
    back_home(r);
}

/* --- waiting --- */

void release(runner *r, int lane) {
    r->lanes[(size_t)lane].now = READY;
    r->ready.push_back(lane);
}

void release_block(runner *r) {
    if (r->at_block == 0 || r->at_block + r->gone < r->n) return;
    r->at_block = 0;
    for (int i = 0; i < r->n; i++) {
        const int lane = r->backwards ? i : r->n - 1 - i;
        if (r->lanes[(size_t)lane].now == AT_BLOCK) release(r, lane);
    }
}

/* Releases the lanes of `mask` if they have all arrived. */
void release_warp(runner *r, int w, unsigned mask) {
    warp &of = r->warps[(size_t)w];
    const unsigned need = mask & of.exists & ~of.gone;
    for (int i = 0; i < 32; i++)
        if (need >> i & 1) {
            const lane &l = r->lanes[(size_t)(32 * w + i)];
            if (l.now != AT_WARP || l.mask != mask) return;
        }
    for (int k = 0; k < 32; k++) {
        const int i = r->backwards ? k : 31 - k;
        if (!(need >> i & 1)) continue;
        memcpy(of.shown + i * STANDIN_SLOT, of.pending + i * STANDIN_SLOT, STANDIN_SLOT);
        release(r, 32 * w + i);
    }
}

void end_lane(runner *r, int lane) {
    const int w = lane / 32;
    r->lanes[(size_t)lane].now = GONE;
    r->gone++;
    r->warps[(size_t)w].gone |= 1u << lane % 32;
    release_block(r);
    for (int i = 32 * w; i < r->n && i < 32 * w + 32; i++)
        if (r->lanes[(size_t)i].now == AT_WARP) release_warp(r, w, r->lanes[(size_t)i].mask);
}

uint3 place_of(int lane) {
    const unsigned i = (unsigned)lane;
    return {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
}

void fiber_main() {
    runner *r = mine.get();
    enter_fiber(r, nullptr);
    for (;;) {
        while (r->started < r->n) {
            const int lane = r->backwards ? r->n - 1 - r->started : r->started;
            const int me = r->current;
            r->started++;
            r->fibers[(size_t)me]->lane = lane;
            r->lanes[(size_t)lane] = {READY, 0, me};
            threadIdx = place_of(lane);
            (*r->thread)();
            standin_copies_commit();
            standin_copies_wait(0);
            end_lane(r, lane);
        }
        r->fibers[(size_t)r->current]->lane = -1;
        r->idle.push_back(r->current);
        go_home(r);
    }
}

[[noreturn]] void stuck(const runner *r) {
    int warps = 0;
    for (const lane &l : r->lanes) warps += l.now == AT_WARP;
    fprintf(stderr,
            "stand-in: the threads of block (%u, %u, %u) wait for each other: of %d, %d at __syncthreads, %d "
            "for their warps, %d have ended\n",
            blockIdx.x, blockIdx.y, blockIdx.z, r->n, r->at_block, warps, r->gone);
    abort();
}

int some_fiber(runner *r) {
    if (r->idle.empty()) {
        void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) abort();
        r->fibers.emplace_back(new fiber{(unsigned char *)stack, {}, false, -1});
        return (int)r->fibers.size() - 1;
    }
    const int which = r->idle.back();
    r->idle.pop_back();
    return which;
}

void begin_block(runner *r) {
    r->started = r->gone = r->at_block = 0;
    r->lanes.assign((size_t)r->n, lane{UNBORN, 0, -1});
    r->copying.resize((size_t)r->n);
    r->warps.resize((size_t)(r->n + 31) / 32);
    for (size_t w = 0; w < r->warps.size(); w++) {
        const int left = r->n - 32 * (int)w;
        r->warps[w].exists = left >= 32 ? 0xffffffffu : (1u << left) - 1;
        r->warps[w].gone = 0;
    }
}

void run_block(runner *r) {
    begin_block(r);
    while (r->gone < r->n) {
        if (!r->ready.empty()) {
            const int lane = r->ready.back();
            r->ready.pop_back();
            threadIdx = place_of(lane);
            resume(r, r->lanes[(size_t)lane].fiber);
        } else if (r->started < r->n) {
            resume(r, some_fiber(r));
        } else {
            stuck(r);
        }
    }
}

int my_lane(const runner *r) {
    return r->fibers[(size_t)r->current]->lane;
}

} // namespace

void standin_run_grid(dim3 grid, dim3 block, const std::function<void()> &thread, uint64_t draw) {
    if (!mine) mine = std::make_unique<runner>();
    runner *r = mine.get();
    r->thread = &thread;
    r->n = (int)(block.x * block.y * block.z);
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t b = draw & 1 ? n - 1 - i : i;
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        r->backwards = ((draw >> 1) + b) & 1;
        r->late = ((draw >> 2) + b / 2) & 1;
        run_block(r);
    }
}

/* --- what kernels call --- */

void __syncthreads() {
    runner *r = mine.get();
    r->lanes[(size_t)my_lane(r)].now = AT_BLOCK;
    r->at_block++;
    release_block(r);
    go_home(r);
}

const unsigned char *standin_show(const void *value, size_t bytes, unsigned mask) {
    runner *r = mine.get();
    const int lane = my_lane(r), w = lane / 32;
    memcpy(r->warps[(size_t)w].pending + lane % 32 * STANDIN_SLOT, value, bytes);
    r->lanes[(size_t)lane].now = AT_WARP;
    r->lanes[(size_t)lane].mask = mask;
    release_warp(r, w, mask);
    go_home(r);
    return r->warps[(size_t)w].shown;
}

void __syncwarp(unsigned mask) {
    standin_show(nullptr, 0, mask);
}

int standin_lane() {
    return my_lane(mine.get()) % 32;
}

void standin_check_lane(int from, unsigned mask) {
    const warp &w = mine->warps[(size_t)(my_lane(mine.get()) / 32)];
    if ((w.exists & mask) >> from & 1) return;
    fprintf(stderr, "stand-in: thread (%u, %u, %u) asks lane %d of its warp, which does not take part\n",
            threadIdx.x, threadIdx.y, threadIdx.z, from);
    abort();
}

/* --- asynchronous copies --- */

void standin_copy_16(void *to, const void *from) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16) {
        fprintf(stderr, "stand-in: a copy of 16 bytes from %p to %p, which are not aligned to them\n", from,
                to);
        abort();
    }
    runner *r = mine.get();
    if (r->late)
        r->copying[(size_t)my_lane(r)].open.push_back({to, from});
    else
        memcpy(to, from, 16);
}

void standin_copies_commit() {
    copies &c = mine->copying[(size_t)my_lane(mine.get())];
    c.group.push_back(std::move(c.open));
    c.open.clear();
}

void standin_copies_wait(int newest) {
    copies &c = mine->copying[(size_t)my_lane(mine.get())];
    const size_t done = c.group.size() > (size_t)newest ? c.group.size() - (size_t)newest : 0;
    for (size_t i = 0; i < done; i++)
        for (const copies::copy &one : c.group[i]) memcpy(one.to, one.from, 16);
    c.group.erase(c.group.begin(), c.group.begin() + (long)done);
}
