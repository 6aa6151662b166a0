/* launch.c - supervises a run: its output, its errors, signals to hplan, and its end. One poll loop, without
 * threads or signal handlers. */
#define _GNU_SOURCE
#include "cli/launch/launch.h"
#include "base/alloc.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/leftovers.h"
#include "cli/launch/oom.h"
#include "cli/launch/owners.h"
#include "cli/launch/stopped.h"
#include "machines/quota.h"
#include "base/clock.h"
#include "traces/faults/board.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time for mpirun to clean up after a run was told to end or reported a failure. Its own SIGTERM, pause,
 * SIGKILL take 1 to 2 s. */
static const double GRACE_S = 8;
/* After 10 s, ranks notice that one of them does not move, and report what they wait for, which may take a
 * while. If all of them, the only one, or their launcher is stopped, only hplan can notice. A process may
 * wait long for its disk and then continue. */
static const double AFTER_DEADLINE_S = 2.5, SILENT_S = 2, LOOK_EVERY_S = 1;
static const struct {
    hp_process_state state;
    double limit_s; /* without --deadline */
    bool unmoved;   /* only if no rank has moved meanwhile */
    const char *what, *why;
} HALTS[] = {
    {HP_PROCESS_STOPPED, 15, false, "stopped for", "by SIGSTOP, or a suspended job"},
    {HP_PROCESS_DISK, 60, true, "no rank has moved for", "as a disk or file system does not answer"},
};
enum { N_HALT = sizeof HALTS / sizeof *HALTS };

typedef struct stream { /* a pipe from the child, split into lines */
    int fd;
    size_t n;
    char text[1 << 16];
} stream;

typedef struct launch_watch {
    const cli_launch *l;
    pid_t child;
    int signals; /* signalfd */
    stream out, err;
    bool banner;           /* inside a block that mpirun delimits with ----- */
    char banner_text[600]; /* text of the first block: the reason if mpirun could not start the run */
    int banners;
    int dead_rank, dead_signal; /* as reported by mpirun; -1: none */
    char lost_node[256];        /* likewise, node of a daemon that it lost; "": none */
    bool begun;                 /* the ranks have written something */
    int own_signal;             /* SIGINT, SIGTERM or SIGHUP sent to hplan; 0: none */
    double own_signal_s;        /* when the first one arrived */
    double asked_s;             /* when the ranks were last asked to save and end; 0: never */
    double halted_s[N_HALT];    /* since when such a process exists; 0: there is none */
    double looked_s;            /* when that was last checked */
    uint64_t beats;             /* beats of all ranks of this node at that time */
    double kill_s;              /* when to kill the run; 0: not set */
    int kills;                  /* number of kills so far */
    oom_count killed;           /* before the run began */
    hp_error said, *error;      /* hplan-exec's message; hplan's own */
} launch_watch;

static void start_grace(launch_watch *w) {
    if (w->kill_s == 0) w->kill_s = hp_now_s() + GRACE_S;
}

static void signal_ranks(launch_watch *w, int number) {
    kill(-w->child, number);
    start_grace(w);
}

/* --- lines --- */

static const char BANNER[] = "-----"; /* delimits messages of mpirun */

static void handle_err_line(launch_watch *w, const char *line);

/* A remote node's daemon writes among the ranks' own lines. */
static void handle_out_line(launch_watch *w, const char *line) {
    if (w->banner || strncmp(line, BANNER, strlen(BANNER)) == 0) {
        handle_err_line(w, line);
        return;
    }
    w->begun = true;
    if (w->l->line && w->error->code == HP_OK && w->l->line(w->l->self, line, w->error) != HP_OK)
        signal_ranks(w, SIGTERM);
}

/* Lines to suppress. Once the run is ending: everything that Open MPI's run-time and the killed ranks
 * print. Before that: warnings about the shared memory of a dead rank, libevent's about its closed pipe,
 * and where in Open MPI no session directory was made, which its banner explains. */
static bool is_noise(const launch_watch *w, const char *line) {
    static const char *const NOISE[] = {"] Read -1, expected ", "[warn] Epoll ", "session_dir.c at line "};
    if (w->asked_s > 0 && strstr(line, "Forwarding signal ")) return true; /* mpirun says so */
    for (size_t i = 0; i < sizeof NOISE / sizeof *NOISE; i++)
        if (line[0] == '[' && strstr(line, NOISE[i])) return true;
    return w->kill_s > 0;
}

/* Keeps hplan-exec's message for the caller, parses mpirun's banners for the rank that died, and forwards
 * everything else. */
static void handle_err_line(launch_watch *w, const char *line) {
    static const char MESSAGE[] = "hplan: ", ON_NODE[] = " on node ";
    const char *daemon = strstr(line, "Remote daemon:");
    const char *rank = strstr(line, "process rank "), *number = strstr(line, "exited on signal ");
    if (!strncmp(line, MESSAGE, strlen(MESSAGE))) {
        if (w->said.code == HP_OK) hp_fail(&w->said, HP_EINTERNAL, "%s", line + strlen(MESSAGE));
        start_grace(w);
    } else if (!strncmp(line, BANNER, strlen(BANNER))) {
        w->banner = !w->banner;
        w->banners += w->banner;
    } else if (!w->banner) {
        if (!is_noise(w, line)) fprintf(stderr, "%s\n", line);
    } else if (rank && number && w->dead_rank < 0) {
        w->dead_rank = atoi(rank + strlen("process rank "));
        w->dead_signal = atoi(number + strlen("exited on signal "));
    } else if (daemon) {
        sscanf(strstr(daemon, ON_NODE) ? strstr(daemon, ON_NODE) + strlen(ON_NODE) : "", "%255s",
               w->lost_node);
    } else if (w->banners == 1) {
        const size_t n = strlen(w->banner_text);
        snprintf(w->banner_text + n, sizeof w->banner_text - n, "%s%s", n && line[0] ? " " : "", line);
    }
}

/* Reads what is available; false at the end of the stream. */
static bool drain(launch_watch *w, stream *s, void (*handle)(launch_watch *, const char *)) {
    const ssize_t got = read(s->fd, s->text + s->n, sizeof s->text - 1 - s->n);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    s->n += (size_t)got;
    char *line = s->text, *end;
    s->text[s->n] = '\0';
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        handle(w, line);
        line = end + 1;
    }
    s->n -= (size_t)(line - s->text);
    memmove(s->text, line, s->n);
    if (s->n == sizeof s->text - 1) s->n = 0; /* a line of 64 KiB is not one of hplan-exec's */
    return got > 0;
}

/* --- the child --- */

static void exec_launcher(const cli_launch *l, launch_command *c, const int out[2], const int err[2],
                          const sigset_t *before) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, before, NULL);
    /* after hplan is killed, nobody reads; mpirun, without its own handlers, must still remove its session */
    signal(SIGPIPE, SIG_IGN);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    launch_environment(l);
    execvp(c->word[0], c->word);
    dprintf(STDERR_FILENO, "hplan: cannot start %s: %s\n", c->word[0], strerror(errno));
    _exit(HP_EUNAVAIL);
}

static hp_status fork_child(launch_watch *w, launch_command *c, const sigset_t *before, hp_error *err) {
    int out[2], complaints[2];
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(complaints, O_CLOEXEC | O_NONBLOCK) != 0)
        return hp_fail(err, HP_EINTERNAL, "cannot make a pipe: %s", strerror(errno));
    fcntl(out[1], F_SETFL, 0); /* the writer may block, the reader must not */
    fcntl(complaints[1], F_SETFL, 0);
    fflush(NULL);
    w->child = fork();
    if (w->child == 0) exec_launcher(w->l, c, out, complaints, before);
    close(out[1]);
    close(complaints[1]);
    w->out.fd = out[0];
    w->err.fd = complaints[0];
    if (w->child < 0) return hp_fail(err, HP_EINTERNAL, "cannot start a process: %s", strerror(errno));
    hp_error ignored; /* only needed by those who recover after a kill */
    if (w->l->scratch) owners_note(w->l->scratch, "launcher", w->child, &ignored);
    return HP_OK;
}

/* The first signal asks the ranks to clean up, the second kills them. timeout(1) signals its child and then
 * its group, so two signals in quick succession count as one. */
static void handle_signal(launch_watch *w) {
    static const double AGAIN_S = 0.5; /* faster than anyone presses Ctrl-C twice on purpose */
    struct signalfd_siginfo info;
    if (read(w->signals, &info, sizeof info) != sizeof info) return;
    if (w->own_signal) {
        if (hp_now_s() > w->own_signal_s + AGAIN_S) signal_ranks(w, SIGKILL);
        return;
    }
    if (w->l->saves && (info.ssi_signo == SIGUSR1 || (info.ssi_signo == SIGTERM && w->asked_s <= 0))) {
        w->asked_s = hp_now_s();
        kill(-w->child, SIGUSR1); /* mpirun and srun pass it on */
        return;
    }
    if (info.ssi_signo == SIGTERM && w->asked_s > 0 && hp_now_s() < w->asked_s + AGAIN_S) return;
    w->own_signal = (int)info.ssi_signo;
    w->own_signal_s = hp_now_s();
    signal_ranks(w, SIGTERM);
}

/* Has a rank of this node moved since the last check? Unknown before there is a board. */
static bool has_moved(launch_watch *w) {
    const int n = w->l->ranks;
    char path[4200];
    uint64_t beats = 0;
    hp_error ignored;
    hp_board_entry *entry = calloc((size_t)n, sizeof *entry);
    HP_ASSERT(entry);
    snprintf(path, sizeof path, "%s/board", w->l->scratch ? w->l->scratch : "");
    const bool known = w->l->scratch && hp_board_read(path, n, entry, &ignored) == HP_OK;
    for (int r = 0; known && r < n; r++) beats += entry[r].beat;
    free(entry);
    const bool moved = beats != w->beats;
    w->beats = beats;
    return !known || moved;
}

static void end_halted(launch_watch *w, int h, const char *who) {
    hp_fail(w->error, HP_ESTALL, "stalled: %s %.0f s %s: %s", HALTS[h].what, hp_now_s() - w->halted_s[h],
            HALTS[h].why, who);
    kill(-w->child, SIGKILL); /* a stopped process handles no other signal; ranks end with their launcher */
    start_grace(w);
}

/* Time in which hplan itself was stopped, and could not check, does not count. */
static void look_for_halted(launch_watch *w) {
    const double now = hp_now_s(), since = w->looked_s, deadline_s = w->l->deadline_s;
    if (w->kill_s > 0 || now < since + LOOK_EVERY_S) return;
    w->looked_s = now;
    const bool moved = has_moved(w), could_look = now <= since + 3 * LOOK_EVERY_S;
    for (int h = 0; h < N_HALT && w->kill_s == 0; h++) {
        char who[96] = "";
        bool silent;
        const bool halted = launch_is_halted(w->child, w->l->ranks, HALTS[h].state, &silent, who, sizeof who);
        const double limit_s =
            deadline_s > 0 ? deadline_s + (silent ? SILENT_S : AFTER_DEADLINE_S) : HALTS[h].limit_s;
        if (!halted || !could_look || (HALTS[h].unmoved && moved))
            w->halted_s[h] = 0;
        else if (w->halted_s[h] <= 0)
            w->halted_s[h] = now;
        else if (now > w->halted_s[h] + limit_s)
            end_halted(w, h, who);
    }
}

/* mpirun waits up to 2 s between the signals by which it ends ranks, even if none is left. Any signal ends
 * such a wait. */
static void hurry(const launch_watch *w) {
    if (w->l->ranks > 1 && launch_is_left_alone(w->child)) kill(w->child, SIGCHLD);
}

/* Runs until both streams end: then no process that could still write is left. A process that waits in the
 * kernel for a disk cannot be killed until the disk answers; it is left behind. */
static void poll_streams(launch_watch *w) {
    bool out = true, err = true;
    while ((out || err) && w->kills < 2) {
        struct pollfd fd[] = {
            {w->signals, POLLIN, 0}, {out ? w->out.fd : -1, POLLIN, 0}, {err ? w->err.fd : -1, POLLIN, 0}};
        if (poll(fd, 3, w->kill_s > 0 ? 20 : 200) == 0) hurry(w);
        if (fd[0].revents) handle_signal(w);
        if (fd[1].revents) out = drain(w, &w->out, handle_out_line);
        if (fd[2].revents) err = drain(w, &w->err, handle_err_line);
        look_for_halted(w);
        if (w->kill_s > 0 && hp_now_s() > w->kill_s) {
            w->kills++;
            kill(-w->child, SIGKILL); /* the ranks end with their parent: PR_SET_PDEATHSIG */
            w->kill_s = hp_now_s() + GRACE_S;
        }
    }
}

/* --- the run's status --- */

/* rank -1: unknown which. Processes on other nodes cannot be identified here. */
static hp_status fail_dead(const launch_watch *w, const char *who, int rank, int number, hp_error *err) {
    char name[48] = "a rank", why[600] = "";
    if (rank >= 0) snprintf(name, sizeof name, "rank %d", rank);
    if (number == SIGKILL) oom_words(&w->killed, w->l->needs, why, sizeof why);
    return hp_fail(err, HP_EDEAD, "%s died (signal %d, %s)%s", who ? who : name, number, strsignal(number),
                   why);
}

static hp_status run_status(const launch_watch *w, const char *launcher, int status, hp_error *err) {
    char who[96];
    if (w->error->code != HP_OK) return w->error->code;
    if (w->own_signal)
        return hp_fail(err, (hp_status)(128 + w->own_signal), "ended by signal %d (%s)", w->own_signal,
                       strsignal(w->own_signal));
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) return HP_OK;
    if (w->said.code != HP_OK)
        return hp_fail(err, code > 128 && code != HP_EDEAD ? HP_EINTERNAL : (hp_status)code, "%s",
                       w->said.text);
    if (w->lost_node[0])
        return hp_fail(
            err, HP_EDEAD,
            "node %s is out of reach: its link was cut, or it, or the launcher's daemon there, ended",
            w->lost_node);
    if (w->dead_rank >= 0) return fail_dead(w, NULL, w->dead_rank, w->dead_signal, err);
    snprintf(who, sizeof who, "the launcher %.64s", launcher);
    if (WIFSIGNALED(status) && w->l->ranks > 1) return fail_dead(w, who, -1, WTERMSIG(status), err);
    if (code > 128 && code - 128 < NSIG) /* mpirun also exits with 255 if it could not reach a node */
        return fail_dead(w, NULL, w->l->ranks == 1 ? 0 : -1, code - 128, err);
    if (w->banner_text[0] &&
        w->begun) /* a daemon that is killed may look to it like one that did not start */
        return hp_fail(err, HP_EDEAD,
                       "a rank, its node or its daemon was lost (the launcher ended with %d): %s", code,
                       w->banner_text);
    if (w->banner_text[0])
        return hp_fail(err, HP_EUNAVAIL, "the launcher failed (exit code %d): %s", code, w->banner_text);
    return hp_fail(err, HP_EINTERNAL, "hplan-exec ended with exit code %d and no message", code);
}

/* Kills and reaps ranks whose mpirun has ended; they are children of hplan (PR_SET_CHILD_SUBREAPER). */
static void reap_orphans(void) {
    char list[4096];
    /* a killed process ends within milliseconds, or 2 s if its memory is large */
    for (int i = 0; i < 100; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        launch_children(getpid(), list, sizeof list);
        if (!*list) return;
        char *save = NULL;
        for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
            if (atoi(p) > 0) kill(atoi(p), SIGKILL);
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = 20000000};
        nanosleep(&pause, NULL);
    }
}

static hp_status run_child(launch_watch *w, launch_command *c, const sigset_t *before, hp_error *err) {
    HP_TRY(fork_child(w, c, before, err));
    poll_streams(w);
    int status = 0;
    while (waitpid(w->child, &status, w->kills < 2 ? 0 : WNOHANG) < 0 && errno == EINTR) {
    }
    kill(-w->child, SIGKILL); /* any process left in the group */
    reap_orphans();
    hp_quota_sweep(""); /* quotas of killed ranks */
    leftovers_sweep_mpirun(w->child);
    close(w->out.fd);
    close(w->err.fd);
    if (w->l->lost) {
        w->l->lost->rank = w->dead_rank;
        snprintf(w->l->lost->node, sizeof w->l->lost->node, "%s", w->lost_node);
    }
    return run_status(w, c->word[0], status, err);
}

/* Signals that would end hplan. Excludes SIGHUP if nohup ignores it (a blocked signal would reach the
 * signalfd even if ignored). */
static void ending_signals(sigset_t *set) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2};
    struct sigaction hangup;
    sigemptyset(set);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) sigaddset(set, SIGNALS[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(set, SIGHUP);
}

/* Did mpirun fail because another one made the directory that they share first? Open MPI 4.1 looks for
 * $TMPDIR/ompi.HOST.UID and makes it in two steps (open-mpi/ompi issue 8510). Nothing has begun then. */
static bool lost_race(const launch_watch *w) {
    return !w->begun && !w->own_signal && strstr(w->banner_text, "unable to create the desired directory") &&
           strstr(w->banner_text, "File exists");
}

static hp_status run_once(const cli_launch *l, launch_command *c, const sigset_t *ours,
                          const sigset_t *before, bool *again, hp_error *err) {
    err->code = HP_OK;
    launch_watch *w = hp_zeroed(1, sizeof *w);
    *w = (launch_watch){.l = l,
                        .killed = oom_count_read(),
                        .dead_rank = -1,
                        .error = err,
                        .signals = signalfd(-1, ours, SFD_CLOEXEC | SFD_NONBLOCK)};
    const hp_status s = run_child(w, c, before, err);
    *again = s != HP_OK && lost_race(w);
    close(w->signals);
    free(w);
    return s;
}

hp_status cli_launch_run(const cli_launch *l, hp_error *err) {
    enum { TRIES = 5 };
    launch_command c;
    HP_TRY(launch_command_make(l, &c, err));
    sigset_t ours, before;
    ending_signals(&ours);
    sigprocmask(SIG_BLOCK, &ours, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    bool again = true;
    hp_status s = HP_OK;
    for (int i = 0; i < TRIES && again; i++) s = run_once(l, &c, &ours, &before, &again, err);
    launch_command_free(&c);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return s;
}
