/* words.h - tests of the command line: hplan is called as a function (cli_main) in a fork of the test, in a
 * scratch folder, which takes a tenth of the time of starting it. The exit code, stdout and stderr are kept.
 *
 *     static void a_name_is_corrected(void **state) {
 *         words *w = *state;
 *         hplan(w, 2, "simulat --gpus %d", 2);
 *         err_says(w, "did you mean 'hplan simulate'");
 *     }
 *     int main(void) {
 *         static const struct CMUnitTest tests[] = {cmocka_unit_test(a_name_is_corrected)};
 *         return cmocka_run_group_tests(tests, words_open, words_close);
 *     }
 *
 * A command that starts ranks belongs into a script (tests/cli/). Patterns are POSIX extended regular
 * expressions in which ^ and $ match at lines. A function whose expectation fails makes the test fail, and
 * prints the command. */
#ifndef HP_TESTS_WORDS_H
#define HP_TESTS_WORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#define HP_PRINTF(text, first) __attribute__((format(printf, text, first)))

typedef struct words {
    char *command;    /* the last one, without "hplan" */
    int status;       /* its exit code; 128 + signal, as in a shell */
    char *out, *err;  /* what it wrote */
    json_t *json;     /* parsed from `out` on demand */
    int stdout_fd;    /* open, in place of `out`; 0: `out`; -1: closed */
    char scratch[32]; /* the folder, which is also the test's current one */
} words;

/* Before and after a group of tests: creates the scratch folder and changes into it; removes it.
 * hplan's caches lie in it. */
int words_open(void **state);
int words_close(void **state);

/* Is this the whole suite (HPLAN_TIER=all)? If not, prints what is left to it. Never under the sanitizers,
 * where a minute's search takes ten: the optimised build runs it. */
bool words_all(const char *title);

/* hplan(w, status, format, ...): runs the command, which must end with `status`, and in a sanitized build
 * without a report; ANY_STATUS: any except a signal's. Words are separated by blanks; '...' is one word. */
enum { ANY_STATUS = -1 };
#define hplan(w, status, ...) words_call(w, __FILE__, __LINE__, status, __VA_ARGS__)
void words_call(words *w, const char *file, int line, int status, const char *format, ...) HP_PRINTF(5, 6);

/* Does the output match? */
#define out_says(w, ...)  words_says(w, __FILE__, __LINE__, (w)->out, true, __VA_ARGS__)
#define err_says(w, ...)  words_says(w, __FILE__, __LINE__, (w)->err, true, __VA_ARGS__)
#define out_lacks(w, ...) words_says(w, __FILE__, __LINE__, (w)->out, false, __VA_ARGS__)
#define err_lacks(w, ...) words_says(w, __FILE__, __LINE__, (w)->err, false, __VA_ARGS__)
#define err_empty(w)      err_lacks(w, ".")
/* stderr has one line, which matches. */
#define err_line(w, ...) (words_one_line(w, __FILE__, __LINE__), err_says(w, __VA_ARGS__))
void words_says(const words *w, const char *file, int line, const char *text, bool wanted, const char *format,
                ...) HP_PRINTF(6, 7);
void words_one_line(const words *w, const char *file, int line);

/* Commands with their expected output; NULL: not checked. */
typedef struct words_row {
    int status;
    const char *command, *out, *err;
} words_row;
#define each_row(w, rows) words_rows(w, __FILE__, __LINE__, rows, sizeof(rows) / sizeof((rows)[0]))
void words_rows(words *w, const char *file, int line, const words_row *rows, size_t n);

/* First group of the pattern's match in `text`, "" if there is none; number of lines that match. */
const char *words_match(const char *text, const char *pattern, char *out, size_t size);
int words_count(const char *text, const char *pattern);

/* Values of the JSON on stdout, by paths like "scaling/0/reason/code". A missing one fails the test, except
 * in words_find (NULL). */
json_t *words_find(words *w, const char *path);
json_t *words_at(words *w, const char *format, ...) HP_PRINTF(2, 3);
double words_number(words *w, const char *format, ...) HP_PRINTF(2, 3);
const char *words_text(words *w, const char *format, ...) HP_PRINTF(2, 3);
int words_length(words *w, const char *format, ...) HP_PRINTF(2, 3);
/* The same compact text for equal JSON; the caller frees it. */
char *words_compact(words *w, const char *format, ...) HP_PRINTF(2, 3);

/* |a - b| <= part * |b| */
#define near_to(a, b, part) words_near(__FILE__, __LINE__, a, b, part)
void words_near(const char *file, int line, double a, double b, double part);

/* Files of the scratch folder. The caller frees what is read; NULL and 0: there is no such file. */
void words_write(const char *name, const char *format, ...) HP_PRINTF(2, 3);
void words_write_bytes(const char *name, const void *bytes, size_t n);
char *words_read(const char *name, size_t *n);
bool words_same_file(const char *a, const char *b);
/* Does a program of this name exist? */
bool words_program(const char *name);

#endif
