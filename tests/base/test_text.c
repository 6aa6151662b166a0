/* test_text.c - a shell reads quoted words as they were; quotes are there only where it needs them. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* All of what the shell prints for one word. */
static void shell_reads(hp_arena *arena, const char *quoted, const char *word) {
    char read[256];
    FILE *f = popen(hp_arena_printf(arena, "printf %%s %s", quoted), "r");
    assert_non_null(f);
    read[fread(read, 1, sizeof read - 1, f)] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_string_equal(read, word);
}

static void a_shell_reads_words_as_they_were(void **state) {
    static const char *const words[] = {"", "it's", "a b", "$HOME", "*", "~", "a;b|c&d", "\"", "`x`", "\\n"};
    hp_arena *arena = hp_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        shell_reads(arena, hp_shell_quoted(arena, words[i]), words[i]);
        shell_reads(arena, hp_shell_word(arena, words[i]), words[i]);
    }
    hp_arena_free(arena);
}

static void plain_words_need_no_quotes(void **state) {
    static const char *const words[] = {"plan.db", "dp=2,stages=2", "--net", "a/b-c_d:1", "50%"};
    hp_arena *arena = hp_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_ptr_equal(hp_shell_word(arena, words[i]), words[i]);
        shell_reads(arena, words[i], words[i]);
    }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shell_reads_words_as_they_were),
                                       cmocka_unit_test(plain_words_need_no_quotes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
