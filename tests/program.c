/* program.c - a test program: all tests of a folder, each of which is tests/FOLDER/test_NAME.c with a main of
 * its own that CMake renames (tests/tests.cmake). It runs the one that its first argument names, or
 * HPLAN_TEST, which ranks that a test starts inherit: `test_plan plan/tiles/tile`. Without either it lists
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name, id)              int id(void);
#define TEST_OF_ARGUMENTS(name, id) int id(int argc, char **argv);
#include HPLAN_TESTS
#undef TEST
#undef TEST_OF_ARGUMENTS

typedef struct test {
    const char *name;
    int (*run)(void);
    int (*run_with)(int argc, char **argv);
} test;

static const test tests[] = {
#define TEST(name, id)              {name, id, NULL},
#define TEST_OF_ARGUMENTS(name, id) {name, NULL, id},
#include HPLAN_TESTS
#undef TEST
#undef TEST_OF_ARGUMENTS
};
enum { N_TEST = (int)(sizeof tests / sizeof tests[0]) };

static const test *find_test(const char *name) {
    for (int i = 0; name && i < N_TEST; i++)
        if (!strcmp(tests[i].name, name)) return &tests[i];
    return NULL;
}

int main(int argc, char **argv) {
    const test *t = argc > 1 ? find_test(argv[1]) : NULL;
    if (t) {
        setenv("HPLAN_TEST", t->name, 1);
        argv[1] = argv[0];
        argv++;
        argc--;
    } else {
        t = find_test(getenv("HPLAN_TEST"));
    }
    if (t) return t->run ? t->run() : t->run_with(argc, argv);
    for (int i = 0; i < N_TEST; i++) puts(tests[i].name);
    return argc > 1 ? 2 : 0;
}
