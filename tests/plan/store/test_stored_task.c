/* test_stored_task.c - what a kind of task says is stored, all of it, and comes back. */
#include "plan/store/stored_task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { COMMON = 24 /* bytes before the union */ };

/* Bytes of a family's fields, without padding. */
static const int field_bytes[] = {
    [HP_FAMILY_NONE] = 0,     [HP_FAMILY_ROWS] = 8,        [HP_FAMILY_FORWARD] = 24, [HP_FAMILY_BACKWARD] = 8,
    [HP_FAMILY_MAXSUM] = 8,   [HP_FAMILY_ZERO] = 16,       [HP_FAMILY_CODE] = 20,    [HP_FAMILY_UPDATE] = 24,
    [HP_FAMILY_MESSAGE] = 12, [HP_FAMILY_COLLECTIVE] = 24, [HP_FAMILY_DUMMY] = 8,
};

static hp_task blank(int op) {
    hp_task t;
    memset(&t, 0, sizeof t);
    t.op = (uint8_t)op;
    return t;
}

static void every_field_comes_back(void **state) {
    (void)state;
    for (int op = 0; op < HP_TASK_OPS; op++) {
        const hp_stored_task none = hp_task_to_stored(&(hp_task){.op = (uint8_t)op});
        int seen = 0;
        for (size_t byte = COMMON; byte < sizeof(hp_task); byte++) {
            hp_task t = blank(op);
            ((unsigned char *)&t)[byte] = 0x5a;
            const hp_stored_task s = hp_task_to_stored(&t);
            const hp_task back = hp_task_from_stored(&s);
            if (memcmp(&s, &none, sizeof s) == 0) continue;
            assert_int_equal(((const unsigned char *)&back)[byte], 0x5a);
            seen++;
        }
        assert_int_equal(seen, field_bytes[hp_task_infos[op].family]);
    }
}

static void what_all_tasks_have_comes_back(void **state) {
    (void)state;
    for (int op = 0; op < HP_TASK_OPS; op++)
        for (size_t byte = 1; byte < COMMON; byte++) {
            hp_task t = blank(op);
            ((unsigned char *)&t)[byte] = 0x5a;
            const hp_stored_task s = hp_task_to_stored(&t);
            const hp_task back = hp_task_from_stored(&s);
            assert_memory_equal(&back, &t, COMMON);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(what_all_tasks_have_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
