/* test_sha256.c - the digest against the examples that NIST gives for FIPS 180-4, and the message of a
 * million a's, in base64. */
#include "plots/report/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void examples_have_their_digests(void **state) {
    static const struct {
        const char *text, *digest;
    } row[] = {
        {"", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
        {"abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE="},
    };
    char out[HP_SHA256_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_string_equal(hp_sha256_base64(&row[i].text, 1, out), row[i].digest);
}

static void a_million_letters_have_theirs(void **state) {
    enum { LETTERS = 1000000 };
    char *text = malloc(LETTERS + 1), out[HP_SHA256_TEXT];
    (void)state;
    assert_non_null(text);
    memset(text, 'a', LETTERS);
    text[LETTERS] = 0;
    const char *const one = text;
    assert_string_equal(hp_sha256_base64(&one, 1, out), "zcduXJkU+5KBocfihNc+Z/GAmkiklyAOBG05zMcRLNA=");
    free(text);
}

static void parts_are_one_text(void **state) {
    static const char *const parts[] = {"a", "", "bc"}, *const whole[] = {"abc"};
    char a[HP_SHA256_TEXT], b[HP_SHA256_TEXT];
    (void)state;
    assert_string_equal(hp_sha256_base64(parts, 3, a), hp_sha256_base64(whole, 1, b));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_have_their_digests),
                                       cmocka_unit_test(a_million_letters_have_theirs),
                                       cmocka_unit_test(parts_are_one_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
