/* run_again.c - leaves out nodes that do not answer, and those on which the same rank died twice in a row. */
#include "cli/run/run_again.h"

#include "cli/launch/reach.h"

#include <string.h>
#include <unistd.h>

enum { MOST_DEATHS = 2 }; /* after so many of one rank in a row, its node or device is avoided */

run_again run_again_first(const run_options *o) {
    return (run_again){.fit = {.here = o->fit_here, .elastic = o->elastic, .keep_device = o->device != NULL},
                       .hostfile = o->hostfile,
                       .avoid = "",
                       .dead_rank = -1};
}

void run_again_end(run_again *a) {
    if (a->left[0]) unlink(a->left);
    a->left[0] = '\0';
}

/* Did ranks die or stall? Then saved checkpoints are intact. */
static bool lost_ranks(hp_status s) {
    return s == HP_EDEAD || s == HP_ESTALL;
}

static void count_deaths(run_again *a, const cli_lost *lost) {
    a->deaths = lost->rank >= 0 && lost->rank == a->dead_rank ? a->deaths + 1 : lost->rank >= 0;
    a->dead_rank = lost->rank;
}

/* Without a hostfile there is one node, with a device less; its ranks are dealt anew. */
static void distrust(hp_arena *arena, const run_options *o, run_again *a, const cli_lost *lost) {
    if (a->deaths < MOST_DEATHS) return;
    fprintf(stderr, "hplan: rank %d died %d times in a row: going on without %s\n", lost->rank, a->deaths,
            o->hostfile && lost->node[0] ? lost->node : "its device");
    if (o->hostfile && lost->node[0])
        a->avoid = hp_arena_printf(arena, "%s%s%s", a->avoid, a->avoid[0] ? "," : "", lost->node);
    else
        a->fit.lost++;
    a->deaths = 0;
    a->dead_rank = -1;
}

static hp_status make_hostfile(const run_options *o, run_again *a, hp_error *err) {
    if (a->left[0]) return HP_OK;
    snprintf(a->left, sizeof a->left, "%.4096s.hosts-XXXXXX", o->trace);
    const int fd = mkstemp(a->left);
    if (fd >= 0) return close(fd) == 0 ? HP_OK : HP_EIO;
    a->left[0] = '\0';
    return hp_fail(err, HP_EIO, "cannot write a hostfile of the nodes that are left beside %s", o->trace);
}

/* Reads the user's hostfile anew each time. `must`: fails unless a node was lost. */
static hp_status use_nodes_left(hp_arena *arena, const run_options *o, run_again *a, bool must,
                                hp_error *err) {
    reached_nodes r;
    hp_error why = {.code = HP_OK, .text = ""};
    if (!o->hostfile) return HP_OK;
    hp_status s = make_hostfile(o, a, &why);
    if (s == HP_OK) s = reach_nodes(arena, o->hostfile, a->avoid, a->left, &r, &why);
    if (s == HP_OK && !r.n)
        s = hp_fail(&why, HP_EPLAN, "no node of %s is left: %s did not answer", o->hostfile, r.lost);
    if (s == HP_OK && must && !r.lost[0]) return err->code;
    if (s != HP_OK) {
        *err = why;
        return s;
    }
    if (r.lost[0]) fprintf(stderr, "hplan: left out: %s\n", r.lost);
    a->hostfile = a->left;
    return HP_OK;
}

bool run_again_may(hp_arena *arena, run_options *o, run_again *a, const cli_lost *lost, hp_error *why) {
    /* a node that cannot be reached at the start is lost, too: of a launcher that fails no more is known */
    const bool failed = o->elastic && o->hostfile && why->code == HP_EUNAVAIL;
    if ((!lost_ranks(why->code) && !failed) || a->restarts == o->restarts) return false;
    fprintf(stderr, "hplan: %s\n", why->text);
    if (o->elastic) {
        count_deaths(a, lost);
        distrust(arena, o, a, lost);
        if (use_nodes_left(arena, o, a, failed, why) != HP_OK) return false;
    }
    fprintf(stderr, "hplan: restart %lld of %lld, from the newest checkpoint\n", (long long)++a->restarts,
            (long long)o->restarts);
    if (!run_options_passed(o, "resume") && o->n_pass < RUN_PASS) o->pass[o->n_pass++] = "--resume";
    why->code = HP_OK;
    return true;
}
