/* test_page.c - the page loads nothing, and no data become markup or script. That the policy's digests are
 * those of its style and script: tests/cli/cli_report.sh. */
#include "plots/report/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *page_of(const char *title, const char *json) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    hp_report_page(f, title, json);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(strlen(text), n);
    return text;
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

static void the_policy_admits_two_digests_and_nothing_else(void **state) {
    char *page = page_of("a plan", "{}");
    (void)state;
    assert_int_equal(count(page, "default-src 'none'"), 1);
    assert_int_equal(count(page, "unsafe"), 0);
    assert_int_equal(count(page, "style-src 'sha256-"), 1);
    assert_int_equal(count(page, "script-src 'sha256-"), 1);
    assert_int_equal(count(page, "{{title}}") + count(page, "{{data}}"), 0);
    free(page);
}

static void nothing_is_loaded(void **state) {
    char *page = page_of("a plan", "{}");
    (void)state;
    assert_int_equal(count(page, " src="), 0);
    assert_int_equal(count(page, "href="), 0);
    assert_int_equal(count(page, "@import"), 0);
    assert_int_equal(count(page, "url("), count(page, "url(#")); /* of the page's own patterns */
    assert_int_equal(count(page, "://"), count(page, "http://www.w3.org/2000/svg"));
    assert_int_equal(count(page, "innerHTML") + count(page, "eval(") + count(page, "document.write"), 0);
    free(page);
}

/* Tags are counted, so that a hostile one would be one too many. */
static void data_stay_data(void **state) {
    static const char hostile[] = "</script><script>owned()</script><!--<script><img src=x onerror=owned()>";
    char json[256];
    (void)state;
    snprintf(json, sizeof json, "{\"name\":\"%s\"}", hostile);
    char *plain = page_of("a plan", "{}"), *page = page_of(hostile, json);
    assert_int_equal(count(page, "<script"), count(plain, "<script"));
    assert_int_equal(count(page, "</script"), count(plain, "</script"));
    assert_int_equal(count(page, "<!--"), count(plain, "<!--"));
    assert_int_equal(count(page, "<img"), 0);
    assert_int_equal(count(page, "&lt;img src=x onerror=owned()>"), 2); /* the title and the heading */
    assert_int_equal(count(page, "\\u003cimg src=x onerror=owned()>"), 1);
    free(page);
    free(plain);
}

static void marks_in_data_are_text(void **state) {
    char *page = page_of("{{data}} @SCRIPT@", "[\"{{title}} @STYLE@\"]");
    (void)state;
    assert_int_equal(count(page, "{{data}} @SCRIPT@"), 2);
    assert_int_equal(count(page, "[\"{{title}} @STYLE@\"]"), 1);
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_policy_admits_two_digests_and_nothing_else),
                                       cmocka_unit_test(nothing_is_loaded), cmocka_unit_test(data_stay_data),
                                       cmocka_unit_test(marks_in_data_are_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
