/* broken.c - ranks search for unreadable samples in rounds. After each round all ranks know how many
 * were found, and whether any rank failed. So no rank waits long for another, and too many broken
 * samples end the search early. */
#include "exec/data/broken/broken.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

/* Duration of a round, in seconds; it ends with a step of hp_dataset_check. */
static const double ROUND_S = 1;
/* Seconds. A step ends after 30 s plus HP_MAX_PIXELS at 2 million pixels per second, or after 60 s of silence
 * (hp_decoder_limits_default); this is twice that. */
static const double ROUND_LIMIT_S = 450;
enum { MOST_NAMED = 10 /* samples named in the error when there are too many */ };
static const char WAITS_FOR[] = "the other ranks to look through their images";

typedef struct finding {
    int64_t sample;
    char *why;
} finding;

typedef struct lane { /* a thread's share of the samples */
    hp_dataset *data;
    int64_t next; /* sample */
    int32_t row;  /* row at which reading continues */
    finding *found;
    int n, capacity;
    hp_status status;
    hp_error err;
} lane;

typedef struct search {
    const hp_broken_options *o;
    hp_dataset *data;
    int64_t count, most; /* number of samples; how many may be left out */
    int64_t stride;      /* distance between samples of a lane */
    double until_s;
    int32_t n;
    lane *lane;
} search;

/* After an early end nobody checks for more. */
static void note(search *s, lane *l, const char *why) {
    if (l->n == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 8;
        l->found = hp_realloc(l->found, sizeof *l->found * (size_t)l->capacity);
    }
    l->found[l->n++] = (finding){l->next, hp_strdup(why)};
    l->next += s->stride;
    l->row = 0;
}

static void look(void *self, int thread, int i) {
    (void)thread;
    search *s = self;
    lane *l = &s->lane[i];
    while (l->next < s->count && l->n <= s->most && hp_now_s() < s->until_s && !*s->o->stop &&
           !*s->o->leave) {
        const hp_status status = hp_dataset_check(l->data, l->next, &l->row, &l->err);
        if (status == HP_EDATA) {
            note(s, l, l->err.text);
        } else if (status != HP_OK) {
            l->status = status;
            return;
        } else if (l->row == 0) {
            l->next += s->stride;
        }
    }
}

static hp_status look_for_a_while(search *s, hp_error *err) {
    s->until_s = hp_now_s() + ROUND_S;
    hp_parallel_for(s->n, s->n, look, s);
    for (int i = 0; i < s->n; i++) {
        if (s->lane[i].status == HP_OK) continue;
        *err = s->lane[i].err;
        return s->lane[i].status;
    }
    if (*s->o->stop)
        return hp_fail(err, (hp_status)(128 + *s->o->stop), "ended by signal %d", (int)*s->o->stop);
    if (*s->o->leave)
        return hp_fail(
            err, HP_EREQUEUE,
            "signal %d came before the first step, while --on-broken skip reads all images: there is nothing "
            "new to save; go on with --resume",
            (int)*s->o->leave);
    return HP_OK;
}

static int64_t found(const search *s) {
    int64_t n = 0;
    for (int i = 0; i < s->n; i++) n += s->lane[i].n;
    return n;
}

static int64_t left(const search *s) {
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->lane[i].next < s->count ? 1 + (s->count - 1 - s->lane[i].next) / s->stride : 0;
    return n;
}

/* Names the samples that this rank found. */
static void name_found(const search *s, const char *what, int64_t most) {
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->lane[i].n && most > 0; k++, most--)
            fprintf(stderr, "%s: %s\n", what, s->lane[i].found[k].why);
}

/* Sums over all ranks; *first: the lowest rank that found any. */
static hp_status add_up(const search *s, int64_t mine, double *all, int64_t *sum, int *first, hp_error *err) {
    HP_TRY(hp_comm_share(s->o->comm, (double)mine, all, WAITS_FOR, err));
    *sum = 0, *first = -1;
    for (int r = s->o->comm->size - 1; r >= 0; r--) {
        *sum += (int64_t)all[r];
        if (all[r] > 0) *first = r;
    }
    return HP_OK;
}

static hp_status too_many(const search *s, int64_t n, int64_t unread, int first, bool *speaker,
                          hp_error *err) {
    *speaker = s->o->comm->rank == first; /* which names some */
    if (*speaker) name_found(s, "broken", MOST_NAMED);
    return hp_fail(
        err, HP_EDATA,
        "%lld of the first %lld images of --data cannot be read, such as those above; of all %lld "
        "--on-broken skip leaves out at most %lld (%.10g %%): repair or remove them, or allow P %% with "
        "--on-broken skip:P",
        (long long)n, (long long)(s->count - unread), (long long)s->count, (long long)s->most, s->o->percent);
}

static hp_status look_through(search *s, double *all, int64_t *n, bool *speaker, hp_error *err) {
    int64_t unread = s->count;
    for (int first, ignored; unread > 0;) {
        HP_TRY(hp_comm_agree_within(s->o->comm, look_for_a_while(s, err), speaker, ROUND_LIMIT_S, WAITS_FOR,
                                    err));
        const bool began = unread == s->count;
        HP_TRY(add_up(s, left(s), all, &unread, &ignored, err));
        HP_TRY(add_up(s, found(s), all, n, &first, err));
        if (*n > s->most || *n == s->count) return too_many(s, *n, unread, first, speaker, err);
        if (began && unread > 0 && s->o->comm->rank == 0)
            fprintf(stderr, "note: --on-broken skip: all %lld images are read once before the first step\n",
                    (long long)s->count);
    }
    return HP_OK;
}

/* Each rank contributes ones at its own samples; the sum has all. */
static hp_status tell_each_other(search *s, hp_error *err) {
    double *broken = hp_zeroed((size_t)s->count, sizeof *broken);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->lane[i].n; k++) broken[s->lane[i].found[k].sample] = 1;
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = s->count,
                           .data = broken};
    const hp_status status = hp_comm_run(s->o->comm, &op, HP_COMM_SETUP_LIMIT_S, WAITS_FOR, err);
    for (int64_t i = 0; i < s->count && status == HP_OK; i++)
        if (broken[i] > 0) hp_dataset_leave_out(s->data, i);
    free(broken);
    return status;
}

static void close_search(search *s) {
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->lane[i].n; k++) free(s->lane[i].found[k].why);
        free(s->lane[i].found);
    }
    free(s->lane);
}

hp_status hp_broken_leave_out(const hp_broken_options *o, hp_loader *l, int64_t *n, bool *speaker,
                              hp_error *err) {
    hp_dataset *const *handle;
    const int32_t lanes = hp_loader_handles(l, &handle);
    if (!hp_dataset_may_leave_out(handle[0])) {
        *speaker = o->comm->rank == 0;
        return hp_fail(err, HP_EUSAGE,
                       "--on-broken skip is for folders of images: --data DIR with {train,test}/CLASS/* or "
                       "{train,test}/{images,masks}");
    }
    const int64_t count = hp_dataset_count(handle[0]);
    search s = {.o = o,
                .data = handle[0],
                .count = count,
                .most = (int64_t)ceil(o->percent / 100 * (double)count),
                .stride = (int64_t)o->comm->size * lanes,
                .n = lanes,
                .lane = hp_zeroed((size_t)lanes, sizeof *s.lane)};
    for (int32_t i = 0; i < lanes; i++)
        s.lane[i] = (lane){.data = handle[i], .next = o->comm->rank + (int64_t)i * o->comm->size};
    double *all = hp_alloc(sizeof *all * (size_t)o->comm->size);
    hp_status status = look_through(&s, all, n, speaker, err);
    if (status == HP_OK) name_found(&s, "note: left out", INT64_MAX);
    if (status == HP_OK && *n > 0) status = tell_each_other(&s, err);
    free(all);
    close_search(&s);
    return status;
}
