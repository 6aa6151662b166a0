/* test_move.c - copy and zero tasks on both devices: exactly the intersection of two boxes is copied, and
 * copying is the adjoint of adding back. */
#include "exec/device/device.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { FROM = HP_BUF_FIXED, TO, BUFFERS, MOVE_COPY = 0, MOVE_ADD_BACK, MOVE_ZERO, MOVES };

/* A role with two buffers of one tensor and the moves between them. */
typedef struct fixture {
    hp_program program;
    hp_graph graph; /* the image alone */
    hp_layer image;
    hp_tensor tensor;
    hp_role role;
    hp_task task[MOVES];
    int32_t operand[4];
    hp_buffer buffer[BUFFERS];
    unsigned char *memory;
    const hp_device_ops *ops;
    hp_device *device;
} fixture;

static int below(uint64_t round, uint64_t *c, int n) {
    return (int)hp_rng_below(41, round, (*c)++, (uint64_t)n);
}

/* Ranges are whole, one element, or anything in between, so that runs of every kind occur. */
static hp_box draw_box(uint64_t round, uint64_t *c, const int32_t whole[HP_AXES]) {
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        const int kind = below(round, c, 3);
        b.lo[a] = kind == 0 ? 0 : below(round, c, whole[a]);
        b.hi[a] = kind == 0 ? whole[a] : b.lo[a] + 1 + (kind == 1 ? 0 : below(round, c, whole[a] - b.lo[a]));
    }
    return b;
}

static void add_buffer(fixture *f, int id, hp_buffer_kind kind, hp_dtype dtype, const hp_box *box) {
    const int64_t elems = box ? hp_box_elems(box) : 0;
    f->buffer[id] = (hp_buffer){.kind = (uint8_t)kind,
                                .dtype = (uint8_t)dtype,
                                .bytes = elems * hp_dtype_bytes(dtype),
                                .offset = f->role.arena_bytes};
    if (box) f->buffer[id].box = *box;
    f->role.arena_bytes += (f->buffer[id].bytes + 63) / 64 * 64;
}

static void add_task(fixture *f, int id, hp_task_op op, int flags, int first, int n) {
    f->task[id] =
        (hp_task){.op = (uint8_t)op, .flags = (uint8_t)flags, .layer = -1, .operand = first, .n_operand = n};
}

static void open_device(fixture *f) {
    hp_error err;
    const hp_device_config c = {
        .program = &f->program, .graph = &f->graph, .role = &f->role, .arena = f->memory, .threads = 1};
    assert_int_equal(f->ops->open(&c, &f->device, &err), HP_OK);
}

static void set_up(fixture *f, const hp_device_ops *ops, hp_dtype dtype, const hp_box *from,
                   const hp_box *to) {
    *f = (fixture){.ops = ops, .image = {.op = HP_INPUT}};
    f->graph = (hp_graph){.n_layer = 1, .n_tensor = 1, .layer = &f->image, .tensor = &f->tensor};
    f->program = (hp_program){.dtype = (int32_t)ops->dtype, .dp = 1, .micro = 1, .n_role = 1};
    for (int b = 0; b < HP_BUF_FIXED; b++) add_buffer(f, b, (hp_buffer_kind)b, ops->dtype, NULL);
    add_buffer(f, FROM, HP_BUF_TENSOR, dtype, from);
    add_buffer(f, TO, HP_BUF_MESSAGE, dtype, to);
    memcpy(f->operand, (const int32_t[]){TO, FROM, FROM, TO}, sizeof f->operand);
    add_task(f, MOVE_COPY, HP_TASK_COPY, 0, 0, 2);
    add_task(f, MOVE_ADD_BACK, HP_TASK_COPY, HP_FLAG_ADD, 2, 2);
    add_task(f, MOVE_ZERO, HP_TASK_ZERO, 0, 0, 1);
    f->task[MOVE_ZERO].zero.elems = hp_box_elems(to);
    f->role.task = f->task;
    f->role.operand = f->operand;
    f->role.buffer = f->buffer;
    f->role.n_task = MOVES;
    f->memory = aligned_alloc(64, (size_t)(f->role.arena_bytes + 64));
    open_device(f);
}

static void tear_down(fixture *f) {
    f->ops->close(f->device);
    free(f->memory);
}

static void run(fixture *f, int task) {
    hp_error err;
    const hp_step step = {0};
    assert_int_equal(f->ops->run(f->device, task, &step, &err), HP_OK);
}

static double get(const fixture *f, int buffer, int64_t i) {
    const void *p = f->memory + f->buffer[buffer].offset;
    return f->buffer[buffer].dtype == HP_F64   ? ((const double *)p)[i]
           : f->buffer[buffer].dtype == HP_F32 ? (double)((const float *)p)[i]
                                               : ((const int32_t *)p)[i];
}

static void set(fixture *f, int buffer, int64_t i, double v) {
    void *p = f->memory + f->buffer[buffer].offset;
    if (f->buffer[buffer].dtype == HP_F64)
        ((double *)p)[i] = v;
    else if (f->buffer[buffer].dtype == HP_F32)
        ((float *)p)[i] = (float)v;
    else
        ((int32_t *)p)[i] = (int32_t)v;
}

static int64_t elems(const fixture *f, int buffer) {
    return hp_box_elems(&f->buffer[buffer].box);
}

/* Small integers: sums of them are exact in every type. */
static void fill(fixture *f, int buffer, uint64_t stream) {
    for (int64_t i = 0; i < elems(f, buffer); i++)
        set(f, buffer, i, (double)hp_rng_below(42, stream, (uint64_t)i, 17) - 8);
}

static void coordinates(const hp_box *b, int64_t i, int32_t at[HP_AXES]) {
    for (int a = HP_AXES - 1; a >= 0; a--) {
        at[a] = b->lo[a] + (int32_t)(i % hp_box_len(b, a));
        i /= hp_box_len(b, a);
    }
}

/* Index of the box's element at those coordinates, -1 outside. */
static int64_t element_at(const hp_box *b, const int32_t at[HP_AXES]) {
    int64_t e = 0;
    for (int a = 0; a < HP_AXES; a++) {
        if (at[a] < b->lo[a] || at[a] >= b->hi[a]) return -1;
        e = e * hp_box_len(b, a) + at[a] - b->lo[a];
    }
    return e;
}

typedef void law(fixture *f);

static void over_boxes(law *check) {
    const hp_device_ops *const devices[] = {&hp_device_ref, &hp_device_cpu};
    for (uint64_t round = 0; round < 300; round++) {
        uint64_t c = 0;
        const int32_t whole[HP_AXES] = {1 + below(round, &c, 3), 1 + below(round, &c, 9),
                                        1 + below(round, &c, 9), 1 + below(round, &c, 40)};
        const hp_box from = draw_box(round, &c, whole), to = draw_box(round, &c, whole);
        fixture f;
        set_up(&f, devices[round % 2], devices[round % 2]->dtype, &from, &to);
        fill(&f, FROM, 2 * round);
        fill(&f, TO, 2 * round + 1);
        check(&f);
        tear_down(&f);
    }
}

static void check_copy(fixture *f) {
    const hp_box *from = &f->buffer[FROM].box, *to = &f->buffer[TO].box;
    double *old = calloc((size_t)elems(f, TO), sizeof *old);
    for (int64_t i = 0; i < elems(f, TO); i++) old[i] = get(f, TO, i);
    run(f, MOVE_COPY);
    for (int64_t i = 0; i < elems(f, TO); i++) {
        int32_t at[HP_AXES];
        coordinates(to, i, at);
        const int64_t e = element_at(from, at);
        assert_true(get(f, TO, i) == (e < 0 ? old[i] : get(f, FROM, e)));
    }
    free(old);
}

static void a_copy_moves_exactly_where_boxes_meet(void **state) {
    (void)state;
    over_boxes(check_copy);
}

/* <A x, y> = <x, A' y>: A copies into zeros, A' adds back. */
static void check_adjoint(fixture *f) {
    double *x = calloc((size_t)elems(f, FROM), sizeof *x), *y = calloc((size_t)elems(f, TO), sizeof *y);
    double there = 0, back = 0;
    for (int64_t i = 0; i < elems(f, FROM); i++) x[i] = get(f, FROM, i);
    for (int64_t i = 0; i < elems(f, TO); i++) y[i] = get(f, TO, i);
    run(f, MOVE_ZERO);
    run(f, MOVE_COPY);
    for (int64_t i = 0; i < elems(f, TO); i++) there += get(f, TO, i) * y[i];
    for (int64_t i = 0; i < elems(f, FROM); i++) set(f, FROM, i, 3);
    for (int64_t i = 0; i < elems(f, TO); i++) set(f, TO, i, y[i]);
    run(f, MOVE_ADD_BACK);
    for (int64_t i = 0; i < elems(f, FROM); i++) back += x[i] * (get(f, FROM, i) - 3);
    assert_true(there == back);
    free(x);
    free(y);
}

static void adding_back_is_the_adjoint_of_copying(void **state) {
    (void)state;
    over_boxes(check_adjoint);
}

/* Labels are copied as well. */
static void whole_numbers_are_copied(void **state) {
    (void)state;
    const hp_box from = {{0, 2, 0, 0}, {2, 6, 7, 1}}, to = {{1, 0, 3, 0}, {2, 9, 5, 1}};
    fixture f;
    set_up(&f, &hp_device_cpu, HP_I32, &from, &to);
    fill(&f, FROM, 1);
    fill(&f, TO, 2);
    check_copy(&f);
    tear_down(&f);
}

static void zero_clears_its_range_alone(void **state) {
    (void)state;
    const hp_box box = {{0, 0, 0, 0}, {1, 5, 7, 3}};
    const hp_device_ops *const devices[] = {&hp_device_ref, &hp_device_cpu};
    for (int k = 0; k < 2; k++) {
        fixture f;
        set_up(&f, devices[k], devices[k]->dtype, &box, &box);
        for (int64_t i = 0; i < elems(&f, TO); i++) set(&f, TO, i, 5);
        f.task[MOVE_ZERO].zero.first = 11;
        f.task[MOVE_ZERO].zero.elems = 60;
        f.ops->close(f.device);
        open_device(&f); /* devices bind tasks when they open */
        run(&f, MOVE_ZERO);
        for (int64_t i = 0; i < elems(&f, TO); i++)
            assert_true(get(&f, TO, i) == (i >= 11 && i < 71 ? 0 : 5));
        tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_moves_exactly_where_boxes_meet),
        cmocka_unit_test(adding_back_is_the_adjoint_of_copying),
        cmocka_unit_test(whole_numbers_are_copied),
        cmocka_unit_test(zero_clears_its_range_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
