/* page.c - writes the page with its title and data. The rest of it, with the style, the scripts and their
 * digests, is made when hplan is built (page.cmake) and compiled into the binary. */
#include "plots/report/page.h"

#include <stdbool.h>
#include <string.h>

__asm__(".section .rodata\n"
        ".global hp_report_template\n"
        "hp_report_template:\n"
        ".incbin \"" HPLAN_REPORT_TEMPLATE "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char hp_report_template[];

/* Text as an element's content. */
static void write_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else
            fputc(*text, f);
    }
}

/* JSON has < in strings alone, where an escape means the same. Without one, no </script> or <!-- can end or
 * change the block. */
static void write_json(FILE *f, const char *json) {
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", f);
        else
            fputc(*json, f);
    }
}

static bool skip(const char **at, const char *mark) {
    const size_t n = strlen(mark);
    if (strncmp(*at, mark, n) != 0) return false;
    *at += n;
    return true;
}

void hp_report_page(FILE *f, const char *title, const char *json) {
    for (const char *at = hp_report_template; *at;) {
        if (skip(&at, "{{title}}"))
            write_text(f, title);
        else if (skip(&at, "{{data}}"))
            write_json(f, json);
        else
            fputc(*at++, f);
    }
}
