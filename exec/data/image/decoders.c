/* decoders.c - the process that forks decoders, and the rank's requests to it. It was forked before the rank
 * had threads, has none itself, and reads no files, so every decoder starts clean. */
#include "exec/data/image/decoder_wire.h"
#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct hp_decoders {
    hp_decoder_limits limits;
    int socket;
    pid_t pid;
    pthread_mutex_t one; /* serialises requests */
};

/* A request with a descriptor starts a decoder on that socket; one without ends the decoder `pid`. */
typedef struct question {
    int32_t pid;
} question;

typedef struct reply {
    int32_t pid, ended; /* waitpid's status */
} reply;

hp_decoder_limits hp_decoder_limits_default(void) {
    return (hp_decoder_limits){.memory_bytes = 3LL << 30, .cpu_s = 30, .pixels_per_s = 2e6, .silent_s = 60};
}

/* --- the process --- */

/* Makes the process end with its parent, keeps only `socket`, and silences its output, which would come
 * from untrusted files. */
static void begin_process(int socket, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    prctl(PR_SET_NAME, "hplan-decode"); /* HP_DECODER_NAME, traces/faults/process.h */
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++) dup2(null, fd);
    for (int fd = 3, end = (int)sysconf(_SC_OPEN_MAX) < 4096 ? (int)sysconf(_SC_OPEN_MAX) : 4096; fd < end;
         fd++)
        if (fd != socket) close(fd);
}

static int32_t fork_decoder(int socket, const hp_decoder_limits *l) {
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0) return (int32_t)pid;
    begin_process(socket, parent);
    hp_decoder_serve(socket, l);
}

/* A decoder that has died already was not killed: returns its own status. */
static int end_decoder(int32_t pid) {
    int ended = -1;
    kill(pid, SIGKILL);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    return ended;
}

_Noreturn static void serve(int socket, const hp_decoder_limits *l) {
    question q;
    for (int fd; hp_wire_receive(socket, &q, sizeof q, &fd) > 0;) {
        reply r = {.pid = q.pid, .ended = 0};
        if (fd >= 0) {
            r.pid = fork_decoder(fd, l);
            close(fd);
        } else {
            r.ended = end_decoder(q.pid);
        }
        if (hp_wire_send(socket, &r, sizeof r, -1) != 0) break;
    }
    _exit(0);
}

/* Resets signals that the rank's libraries have set, and ignores those that a terminal or launcher sends to
 * all processes: the rank decides. */
static void reset_signals(void) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) signal(SIGNALS[i], SIG_IGN);
}

hp_status hp_decoders_start(const hp_decoder_limits *l, hp_decoders **out, hp_error *err) {
    int end[2];
    const pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) != 0)
        return hp_fail(err, HP_EUNAVAIL, "no socket to a process that decodes images: %s", strerror(errno));
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) {
        close(end[0]), close(end[1]);
        return hp_fail(err, HP_EUNAVAIL, "no process to decode images: %s; raise ulimit -u", strerror(errno));
    }
    if (pid == 0) {
        begin_process(end[1], parent);
        reset_signals();
        serve(end[1], l);
    }
    close(end[1]);
    hp_decoders *d = hp_zeroed(1, sizeof *d);
    *d = (hp_decoders){.limits = *l, .socket = end[0], .pid = pid};
    pthread_mutex_init(&d->one, NULL);
    *out = d;
    return HP_OK;
}

/* --- the rank --- */

void hp_decoders_stop(hp_decoders *d) {
    if (!d) return;
    close(d->socket);
    while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    pthread_mutex_destroy(&d->one);
    free(d);
}

const hp_decoder_limits *hp_decoders_limits(const hp_decoders *d) {
    return &d->limits;
}

static int ask(hp_decoders *d, const question *q, int fd, reply *r) {
    pthread_mutex_lock(&d->one);
    const int good = hp_wire_send(d->socket, q, sizeof *q, fd) == 0 &&
                     hp_wire_receive(d->socket, r, sizeof *r, NULL) == (ssize_t)sizeof *r;
    pthread_mutex_unlock(&d->one);
    return good;
}

hp_status hp_decoders_spawn(hp_decoders *d, int *socket, int32_t *pid, hp_error *err) {
    int end[2];
    reply r = {.pid = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) != 0)
        return hp_fail(err, HP_EUNAVAIL, "no socket to a decoder of images: %s", strerror(errno));
    const int good = ask(d, &(question){.pid = 0}, end[1], &r);
    close(end[1]);
    if (good && r.pid > 0) {
        *socket = end[0], *pid = r.pid;
        return HP_OK;
    }
    close(end[0]);
    return hp_fail(err, HP_EUNAVAIL, "no process to decode images: %s",
                   good ? "the system has no room for one; raise ulimit -u"
                        : "the one that starts them is gone");
}

int hp_decoders_end(hp_decoders *d, int32_t pid) {
    reply r;
    return ask(d, &(question){.pid = pid}, -1, &r) ? r.ended : -1;
}
