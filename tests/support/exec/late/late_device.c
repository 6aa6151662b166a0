/* late_device.c - a device that works asynchronously, simulated by threads on top of any other device. */
#include "tests/support/exec/late/late_device.h"

_Atomic int64_t late_given; /* tasks by themselves */

static const hp_device_ops *late_inner; /* device that runs the tasks; set before the ranks start */

typedef struct late_task {
    late_rank *rank;
    hp_device *device;
    int task;
} late_task;

static void late_do_task(void *self) {
    const late_task *t = self;
    hp_error err;
    const hp_status s = late_inner->run(t->device, t->task, &t->rank->step, &err);
    if (s == HP_OK) return;
    pthread_mutex_lock(&t->rank->lock);
    t->rank->failed = s;
    pthread_mutex_unlock(&t->rank->lock);
}

typedef struct late_begun {
    late_rank *rank;
    hp_step step;
} late_begun;

static void late_do_begin(void *self) {
    const late_begun *b = self;
    b->rank->step = b->step;
}

static hp_status late_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    hp_device_config real = *config;
    real.arena = late_me->real;
    return late_inner->open(&real, device, err);
}

static hp_status late_begin(hp_device *d, const hp_step *step, hp_error *err) {
    (void)d, (void)err;
    late_begun *b = malloc(sizeof *b);
    HP_ASSERT(b);
    *b = (late_begun){late_me, *step};
    late_give(late_stream_of(0, 0, 0), &(hp_order){0}, late_do_begin, b);
    return HP_OK;
}

static hp_status late_enqueue(hp_device *d, int task, const hp_order *order, hp_error *err) {
    (void)err;
    late_task *t = malloc(sizeof *t);
    HP_ASSERT(t);
    *t = (late_task){late_me, d, task};
    if (late_me->capture)
        late_capture_part(order, late_do_task, t);
    else
        late_give(late_stream_of(0, 0, 0), order, late_do_task, t);
    late_given += !late_me->capture;
    return HP_OK;
}

static void late_close(hp_device *d) {
    late_drain();
    late_inner->close(d);
}

hp_device_ops late_device(const hp_device_ops *inner, uint64_t seed) {
    late_inner = inner;
    late_seed = seed;
    return (hp_device_ops){.name = "late",
                           .dtype = inner->dtype,
                           .open = late_open,
                           .close = late_close,
                           .memory = &LATE_MEMORY,
                           .begin = late_begin,
                           .enqueue = late_enqueue};
}
