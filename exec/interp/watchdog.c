/* watchdog.c - the board of heart beats, and patience. */
#include "exec/interp/watchdog.h"

#include "base/clock.h"
#include "base/hash.h"
#include "traces/faults/board.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct hp_watch {
    int rank, ranks;
    hp_board_row *row;    /* ranks + 1; row 0 is the board's, rank r has row r + 1 */
    bool remembers;       /* the beats of half a wait ago */
    uint64_t *beat, *now; /* and those that silence is measured from; one allocation */
};

static uint64_t host_number(void) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return hp_hash64(name, strlen(name), 1) | 1;
}

static hp_status board_file(const char *path, int ranks, int *fd, hp_error *err) {
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0) return hp_fail(err, HP_ECREATE, "cannot create %s: %s", path, strerror(errno));
    const int code = posix_fallocate(
        *fd, 0, (off_t)hp_board_bytes(ranks)); /* a full disk is an error now, no signal later */
    if (code == 0) return HP_OK;
    close(*fd);
    return hp_fail(err, HP_EIO, "cannot reserve %zu bytes for %s: %s", hp_board_bytes(ranks), path,
                   strerror(code));
}

hp_status hp_watch_open(const char *path, int rank, int ranks, hp_watch **w, hp_error *err) {
    int fd = -1;
    if (path) HP_TRY(board_file(path, ranks, &fd, err));
    void *map = mmap(NULL, hp_board_bytes(ranks), PROT_READ | PROT_WRITE,
                     path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED)
        return hp_fail(err, HP_EIO, "cannot map %s: %s", path ? path : "memory", strerror(errno));
    *w = calloc(1, sizeof **w);
    HP_ASSERT(*w);
    **w = (hp_watch){.rank = rank, .ranks = ranks, .row = map};
    (*w)->beat = calloc(2 * (size_t)ranks, sizeof *(*w)->beat);
    HP_ASSERT((*w)->beat);
    (*w)->now = (*w)->beat + ranks;
    atomic_store(&(*w)->row[rank + 1].pid, (int32_t)getpid());
    atomic_store(&(*w)->row[rank + 1].begin, hp_process_begin((int32_t)getpid()));
    atomic_store(&(*w)->row[rank + 1].doing, -1);
    atomic_store(&(*w)->row[rank + 1].host, host_number());
    return HP_OK;
}

void hp_watch_close(hp_watch *w) {
    if (!w) return;
    atomic_store(&w->row[w->rank + 1].host, 0); /* gone in good order: not silent */
    munmap(w->row, hp_board_bytes(w->ranks));
    free(w->beat);
    free(w);
}

void hp_watch_note(hp_watch *w, int32_t task, int32_t iter) {
    hp_board_row *r = &w->row[w->rank + 1];
    atomic_store_explicit(&r->doing, (int64_t)((uint64_t)(uint32_t)iter << 32 | (uint32_t)task),
                          memory_order_relaxed);
    hp_watch_beat(w);
}

void hp_watch_beat(hp_watch *w) {
    atomic_fetch_add_explicit(&w->row[w->rank + 1].beat, 1, memory_order_relaxed);
}

void hp_watch_reads(hp_watch *w, bool begins) {
    if (!begins) atomic_store(&w->row[w->rank + 1].read_ns, (int64_t)(1e9 * hp_now_s()));
    atomic_fetch_add(&w->row[w->rank + 1].reads, begins ? 1 : -1);
    hp_watch_beat(w);
}

double hp_patience_limit_s(const hp_patience *p) {
    /* 10 s and 20 times the prediction: reliability rule of the project. Before a first step is measured, 60
     * s cover its page faults and the library's first calls; a prediction made for another machine says
     * nothing here. */
    static const double LEAST_S = 10, FACTOR = 20, FIRST_S = 60, FIRST_ELSEWHERE_S = 600;
    if (p->fixed_s > 0) return p->fixed_s;
    double limit = LEAST_S;
    if (p->longest_s <= 0) limit = p->predicted_here ? FIRST_S : FIRST_ELSEWHERE_S;
    if (FACTOR * p->predicted_s > limit) limit = FACTOR * p->predicted_s;
    if (FACTOR * p->longest_s > limit) limit = FACTOR * p->longest_s;
    return limit;
}

/* A fifth of a second, many times what a running rank's poll takes. The heart goes on beating: the ranks that
 * wait for the same one check at the same time, and none may mistake another's check for silence. */
static void pause_beating(hp_watch *w) {
    enum { SLICES = 20 };
    const struct timespec slice = {.tv_sec = 0, .tv_nsec = 200000000 / SLICES};
    for (int i = 0; i < SLICES; i++) {
        nanosleep(&slice, NULL);
        hp_watch_beat(w);
    }
}

static void note_beats(const hp_watch *w, uint64_t *beat) {
    for (int r = 0; r < w->ranks; r++) beat[r] = atomic_load(&w->row[r + 1].beat);
}

static hp_suspect suspect_of(const hp_watch *w, int rank) {
    const hp_board_row *row = &w->row[rank + 1];
    const int64_t doing = atomic_load(&row->doing);
    return (hp_suspect){.rank = rank,
                        .task = doing < 0 ? -1 : (int32_t)(uint32_t)doing,
                        .iter = doing < 0 ? -1 : (int32_t)(doing >> 32),
                        .reads = atomic_load(&row->reads) > 0,
                        .state = hp_process_state_of(atomic_load(&row->pid))};
}

bool hp_watch_sees(const hp_watch *w, int rank) {
    return rank == w->rank || atomic_load(&w->row[rank + 1].host) == host_number();
}

/* *reads: one of those that move reads. */
static hp_suspect find_silent(hp_watch *w, bool *reads) {
    const uint64_t host = host_number();
    note_beats(w, w->now);
    pause_beating(w);
    for (int r = 0; r < w->ranks; r++) {
        hp_board_row *row = &w->row[r + 1];
        if (r == w->rank || atomic_load(&row->host) != host) continue;
        const bool reading = atomic_load(&row->reads) > 0;
        const uint64_t since = reading && w->remembers ? w->beat[r] : w->now[r];
        if (atomic_load(&row->beat) == since) return suspect_of(w, r);
        *reads |= reading;
    }
    return (hp_suspect){.rank = -1, .task = -1, .iter = -1};
}

/* When another rank of the node last ended to read, in seconds of hp_now_s; -INFINITY: none did. The clock's
 * origin may be the boot of a machine that is younger than the limit. */
static double last_read_s(const hp_watch *w) {
    const uint64_t host = host_number();
    int64_t last = 0;
    for (int r = 0; r < w->ranks; r++) {
        hp_board_row *row = &w->row[r + 1];
        if (r == w->rank || atomic_load(&row->host) != host) continue;
        const int64_t ended = atomic_load(&row->read_ns);
        if (ended > last) last = ended;
    }
    return last ? 1e-9 * (double)last : -INFINITY;
}

hp_waited hp_watch_wait(hp_watch *w, double waited_s, double limit_s, hp_suspect *suspect) {
    bool reads = false;
    hp_watch_beat(w);
    if (waited_s < limit_s / 2) {
        w->remembers = false;
        return HP_WAITED_WAIT;
    }
    if (!w->remembers) note_beats(w, w->beat);
    w->remembers = true;
    if (waited_s <= limit_s || hp_now_s() - last_read_s(w) <= limit_s) return HP_WAITED_WAIT;
    *suspect = find_silent(w, &reads);
    reads |= hp_now_s() - last_read_s(w) <= limit_s; /* it ended while this rank looked */
    return suspect->rank < 0 && reads ? HP_WAITED_AGAIN : HP_WAITED_STALLED;
}

const char *hp_suspect_words(const hp_suspect *s) {
    static const char *const STATE[HP_PROCESS_STATES] = {
        [HP_PROCESS_GONE] = "its process is gone",
        [HP_PROCESS_RUNS] = "its process computes all the time",
        [HP_PROCESS_SLEEPS] = "its process sleeps",
        [HP_PROCESS_DISK] = "its process waits in the kernel for a disk or file system that does not answer",
        [HP_PROCESS_STOPPED] = "its process is stopped (SIGSTOP, a suspended job)"};
    if (s->reads && s->state == HP_PROCESS_SLEEPS) return "its process waits for a file that yields nothing";
    return STATE[s->state];
}

bool hp_watch_speak(hp_watch *w) {
    int32_t free_word = 0;
    return atomic_compare_exchange_strong(&w->row[0].spoken, &free_word, 1);
}
