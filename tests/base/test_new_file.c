/* test_new_file.c - outputs: an unwritable path is detected before the work. Concurrent writers of one name,
 * and existing files with a temporary's name, do not interfere. */
#include "base/db.h"
#include "base/new_file.h"
#include "base/st_write.h"
#include "tests/support/plan/tree.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct in_tree {
    char path[256];
} in_tree;

static in_tree at(const tree *t, const char *name) {
    in_tree p;
    snprintf(p.path, sizeof p.path, "%s%s", t->root, name);
    return p;
}

static void what_cannot_be_written_is_refused(void **state) {
    const tree *t = *state;
    char too_long[HP_NEW_FILE_PATH + 2];
    hp_error err = {0};
    memset(too_long, 'x', sizeof too_long);
    too_long[sizeof too_long - 1] = '\0';
    tree_write(t, "/folder/file", "");
    static const char *const NAMES[] = {"/folder", "/missing/file", "/folder/file/below", "/folder/"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        assert_int_equal(hp_new_file_check(at(t, NAMES[i]).path, &err), HP_ECREATE);
    assert_int_equal(hp_new_file_check("", &err), HP_ECREATE);
    assert_int_equal(hp_new_file_check("/dev/null", &err), HP_ECREATE);
    assert_int_equal(hp_new_file_check(too_long, &err), HP_ECREATE);
    assert_int_equal(hp_new_file_check(at(t, "/folder/file").path, &err), HP_OK);
    assert_int_equal(hp_new_file_check(at(t, "/folder/new").path, &err), HP_OK);
}

static void databases_replace_databases_and_nothing_else(void **state) {
    const tree *t = *state;
    hp_error err = {0};
    hp_db db;
    assert_int_equal(hp_db_create(at(t, "/run.db").path, &db, &err), HP_OK);
    assert_int_equal(hp_db_commit(&db, &err), HP_OK);
    hp_db_close(&db);
    tree_write(t, "/text", "SQLite format 3, in prose");
    assert_int_equal(hp_new_file_check_plain(at(t, "/run.db").path, &err), HP_ECREATE);
    assert_int_equal(hp_new_file_check_database(at(t, "/run.db").path, &err), HP_OK);
    assert_int_equal(hp_db_create(at(t, "/run.db").path, &db, &err), HP_OK);
    hp_db_close(&db);
    assert_int_equal(hp_new_file_check_plain(at(t, "/text").path, &err), HP_OK);
    assert_int_equal(hp_new_file_check_database(at(t, "/text").path, &err), HP_ECREATE);
    assert_int_equal(hp_db_create(at(t, "/text").path, &db, &err), HP_ECREATE);
    tree_write(t, "/empty", "");
    static const char *const FREE[] = {"/absent", "/empty"};
    for (size_t i = 0; i < sizeof FREE / sizeof *FREE; i++) {
        assert_int_equal(hp_new_file_check_plain(at(t, FREE[i]).path, &err), HP_OK);
        assert_int_equal(hp_new_file_check_database(at(t, FREE[i]).path, &err), HP_OK);
    }
}

static void a_temporary_is_nobody_elses(void **state) {
    const tree *t = *state;
    char a[HP_NEW_FILE_TEMPORARY], b[HP_NEW_FILE_TEMPORARY];
    int fd[2];
    struct stat st;
    hp_error err = {0};
    const in_tree target = at(t, "/out.db");
    const mode_t mask = umask(027);
    assert_int_equal(hp_new_file_create(target.path, a, &fd[0], &err), HP_OK);
    assert_int_equal(hp_new_file_create(target.path, b, &fd[1], &err), HP_OK);
    umask(mask);
    assert_string_not_equal(a, b);
    assert_int_equal(fstat(fd[0], &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);                         /* 0666 less the mask */
    assert_int_equal(strncmp(a, target.path, strlen(target.path)), 0); /* same directory, so that rename is
                                                                        * atomic */
    close(fd[0]);
    close(fd[1]);
}

static void two_writers_of_one_database_both_succeed(void **state) {
    const tree *t = *state;
    const in_tree target = at(t, "/plan.db"), bystander = at(t, "/plan.db.tmp");
    hp_db one, two, back;
    hp_error err = {0};
    tree_write(t, "/plan.db.tmp", "mine");
    assert_int_equal(hp_db_create(target.path, &one, &err), HP_OK);
    assert_int_equal(hp_db_create(target.path, &two, &err), HP_OK);
    assert_int_equal(hp_db_commit(&one, &err), HP_OK);
    assert_int_equal(hp_db_commit(&two, &err), HP_OK);
    hp_db_close(&one);
    hp_db_close(&two);
    assert_int_equal(hp_db_open(target.path, &back, &err), HP_OK);
    hp_db_close(&back);
    struct stat st;
    assert_int_equal(stat(bystander.path, &st), 0);
    assert_int_equal(st.st_size, 4);
}

static const void *one_byte(void *self, int i, hp_error *err) {
    (void)self, (void)i, (void)err;
    return "x";
}

/* Someone else's link under the name that temporaries had in earlier versions. */
static void weights_do_not_follow_a_planted_link(void **state) {
    const tree *t = *state;
    const in_tree target = at(t, "/w.st"), link = at(t, "/w.st.tmp"), victim = at(t, "/victim");
    const hp_st_tensor tensor = {.name = "a", .dtype = HP_ST_U8, .n_dim = 1, .dim = {1}};
    const hp_st_source source = {.data = one_byte};
    struct stat st;
    hp_error err = {0};
    tree_write(t, "/victim", "precious");
    assert_int_equal(symlink(victim.path, link.path), 0);
    assert_int_equal(hp_safetensors_write(target.path, &tensor, 1, &source, &err), HP_OK);
    assert_int_equal(stat(victim.path, &st), 0);
    assert_int_equal(st.st_size, 8);
    assert_int_equal(lstat(target.path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
}

static void a_commit_that_fails_keeps_both_files(void **state) {
    const tree *t = *state;
    const in_tree target = at(t, "/w"), folder = at(t, "/folder"), link = at(t, "/link");
    char tmp[HP_NEW_FILE_TEMPORARY];
    int fd;
    struct stat st;
    hp_error err = {0};
    tree_write(t, "/w", "earlier");
    tree_write(t, "/folder/file", "");
    assert_int_equal(hp_new_file_create(target.path, tmp, &fd, &err), HP_OK);
    assert_int_equal(write(fd, "new", 3), 3);
    close(fd);
    assert_int_equal(hp_new_file_commit(tmp, folder.path, &err), HP_ECREATE);
    assert_int_equal(stat(tmp, &st), 0);
    assert_int_equal(symlink(tmp, link.path), 0);
    assert_int_equal(hp_new_file_commit(link.path, target.path, &err), HP_EIO); /* not a link to it */
    assert_int_equal(stat(target.path, &st), 0);
    assert_int_equal(st.st_size, 7);
    assert_int_equal(hp_new_file_commit(tmp, target.path, &err), HP_OK);
    assert_int_equal(stat(target.path, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(tmp, &st), -1);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TREE(what_cannot_be_written_is_refused),    IN_TREE(databases_replace_databases_and_nothing_else),
        IN_TREE(a_temporary_is_nobody_elses),          IN_TREE(two_writers_of_one_database_both_succeed),
        IN_TREE(weights_do_not_follow_a_planted_link), IN_TREE(a_commit_that_fails_keeps_both_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
