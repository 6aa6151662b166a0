/* decoder.c - a rank's side of one decoder: sends a request and waits for a timely answer. */
#define _GNU_SOURCE
#include "exec/data/image/decoder_wire.h"
#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Interval at which a wait checks that the decoder is working: far below a rank's shortest
 * deadline, one second. */
enum { LOOK_US = 100000 };

struct hp_decoder {
    hp_decoders *of;
    int32_t pid; /* 0: not running */
    int socket;
    int64_t generation;
    uint8_t *px; /* shared memory */
    size_t room;
    int room_fd; /* to send with the next request; -1: already sent */
};

hp_decoder *hp_decoder_new(hp_decoders *of) {
    if (!of) return NULL;
    hp_decoder *d = hp_zeroed(1, sizeof *d);
    *d = (hp_decoder){.of = of, .socket = -1, .room_fd = -1};
    return d;
}

static void drop_room(hp_decoder *d) {
    if (d->px) munmap(d->px, d->room);
    if (d->room_fd >= 0) close(d->room_fd);
    d->px = NULL, d->room = 0, d->room_fd = -1;
}

/* Ends the decoder; returns its exit status. */
static int end(hp_decoder *d) {
    const int ended = d->pid > 0 ? hp_decoders_end(d->of, d->pid) : -1;
    if (d->socket >= 0) close(d->socket);
    drop_room(d);
    d->pid = 0, d->socket = -1;
    return ended;
}

void hp_decoder_free(hp_decoder *d) {
    if (!d) return;
    end(d);
    free(d);
}

int32_t hp_decoder_pid(const hp_decoder *d) {
    return d->pid;
}

int64_t hp_decoder_generation(const hp_decoder *d) {
    return d->pid > 0 ? d->generation : -1;
}

/* Uses the cores of this thread: the node's ranks divide cores only after the first process was started
 * (exec/run/run_bind.c). */
static void keep_to_cores(int32_t pid) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) sched_setaffinity(pid, sizeof cores, &cores);
}

static hp_status begin(hp_decoder *d, hp_error *err) {
    static const struct timeval look = {.tv_usec = LOOK_US};
    if (d->pid > 0) return HP_OK;
    HP_TRY(hp_decoders_spawn(d->of, &d->socket, &d->pid, err));
    keep_to_cores(d->pid);
    setsockopt(d->socket, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    d->generation++;
    return HP_OK;
}

/* Seals keep a decoder from shrinking the memory while the rank reads it. */
const uint8_t *hp_decoder_room(hp_decoder *d, size_t bytes) {
    if (d->px && bytes <= d->room) return d->px;
    drop_room(d);
    const int fd = memfd_create("hplan-pixels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return NULL;
    uint8_t *px = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        px = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (px == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    d->px = px, d->room = bytes, d->room_fd = fd;
    return px;
}

static int send_request(hp_decoder *d, hp_decoder_request *q) {
    const size_t head = offsetof(hp_decoder_request, path);
    q->room = (int64_t)d->room;
    const int sent = hp_wire_send(d->socket, q,
                                  q->verb == HP_DECODER_OPEN ? head + strlen(q->path) + 1 : head, d->room_fd);
    if (sent == 0 && d->room_fd >= 0) {
        close(d->room_fd);
        d->room_fd = -1;
    }
    return sent;
}

/* --- waiting --- */

static double processor_s(int32_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static hp_status died(hp_decoder *d, const char *path, hp_error *err) {
    const int32_t pid = d->pid;
    const int ended = end(d), by = ended != -1 && WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    const hp_decoder_limits *l = hp_decoders_limits(d->of);
    if (ended == -1)
        return hp_fail(err, HP_EDEAD,
                       "%s: the process that starts decoders was killed: by hand, or because memory ran out",
                       path);
    if (by == SIGKILL)
        return hp_fail(err, HP_EDEAD,
                       "%s: its decoder, process %d, was killed: by hand, or because memory ran out", path,
                       pid);
    if (by == SIGXCPU)
        return hp_fail(
            err, HP_EDATA,
            "%s: decoding takes more than %.0f s and a second for %.0f million pixels; replace the file",
            path, l->cpu_s, l->pixels_per_s * 1e-6);
    if (by)
        return hp_fail(
            err, HP_EDATA,
            "%s: its decoder died of signal %d (%s), in at most %lld MiB of memory; replace the file", path,
            by, strsignal(by), (long long)(l->memory_bytes >> 20));
    return hp_fail(err, HP_EDATA,
                   "%s: its decoder ended (status %d), in at most %lld MiB of memory; replace the file", path,
                   WEXITSTATUS(ended), (long long)(l->memory_bytes >> 20));
}

static hp_status silent(hp_decoder *d, const char *path, hp_error *err) {
    end(d);
    return hp_fail(err, HP_EDATA, "%s: its decoder did nothing for %.0f s; does the file system answer?",
                   path, hp_decoders_limits(d->of)->silent_s);
}

/* Sends pulses as long as the decoder uses processor time, which is limited. */
static hp_status wait_for(hp_decoder *d, const char *path, const hp_pulse *pulse, hp_decoder_answer *a,
                          hp_error *err) {
    double used_s = 0, since_s = hp_now_s();
    for (;;) {
        const ssize_t n = hp_wire_receive(d->socket, a, sizeof *a, NULL);
        if (n > (ssize_t)offsetof(hp_decoder_answer, text)) {
            ((char *)a)[n < (ssize_t)sizeof *a ? n - 1 : (ssize_t)sizeof *a - 1] = '\0';
            return HP_OK;
        }
        if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return died(d, path, err);
        const double now_s = hp_now_s(), used = processor_s(d->pid);
        if (used > used_s) {
            used_s = used, since_s = now_s;
            hp_pulse_beat(pulse);
        } else if (now_s - since_s > hp_decoders_limits(d->of)->silent_s) {
            return silent(d, path, err);
        }
    }
}

/* The text is untrusted. */
static hp_status pass_on(hp_decoder_answer *a, const char *path, hp_error *err) {
    for (char *at = a->text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
    const hp_status s = (hp_status)a->status;
    if (s == HP_EDATA || s == HP_EUNAVAIL) return hp_fail(err, s, "%s", a->text);
    return hp_fail(err, HP_EDATA, "%s: its decoder answers nonsense; replace the file", path);
}

hp_status hp_decoder_ask(hp_decoder *d, hp_decoder_request *q, const char *path, const hp_pulse *pulse,
                         hp_decoder_answer *a, hp_error *err) {
    HP_TRY(begin(d, err));
    if (send_request(d, q) != 0) return died(d, path, err);
    if (q->verb == HP_DECODER_CLOSE) return HP_OK;
    HP_TRY(wait_for(d, path, pulse, a, err));
    return a->status == HP_OK ? HP_OK : pass_on(a, path, err);
}
