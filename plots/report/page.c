/* page.c - fills the page's template. The template, the style and the scripts are files of this folder,
 * compiled into the binary. */
#include "plots/report/page.h"
#include "plots/report/sha256.h"

#include <string.h>

#define EMBED(symbol, file)                                                                                  \
    __asm__(".section .rodata\n"                                                                             \
            ".global hp_report_" #symbol "\n"                                                                \
            "hp_report_" #symbol ":\n"                                                                       \
            ".incbin \"" HPLAN_REPORT_DIR "/" file "\"\n"                                                    \
            ".byte 0\n"                                                                                      \
            ".previous\n");                                                                                  \
    extern const char hp_report_##symbol[]

EMBED(template, "page.html");
EMBED(style, "page.css");
EMBED(draw, "draw.js");
EMBED(charts, "charts.js");
EMBED(timeline, "timeline.js");
EMBED(sections, "page.js");

/* In the order in which they run. */
static const char *const scripts[] = {hp_report_draw, hp_report_charts, hp_report_timeline,
                                      hp_report_sections};
enum { N_SCRIPT = sizeof scripts / sizeof scripts[0] };

static void write_style(FILE *f) {
    fputs(hp_report_style, f);
}

static void write_script(FILE *f) {
    for (int i = 0; i < N_SCRIPT; i++) fputs(scripts[i], f);
}

static void write_style_digest(FILE *f) {
    const char *const style = hp_report_style;
    char digest[HP_SHA256_TEXT];
    fprintf(f, "sha256-%s", hp_sha256_base64(&style, 1, digest));
}

static void write_script_digest(FILE *f) {
    char digest[HP_SHA256_TEXT];
    fprintf(f, "sha256-%s", hp_sha256_base64(scripts, N_SCRIPT, digest));
}

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

/* What a mark of the template stands for: the page's own parts, or what it is about. */
static const struct {
    const char *mark;
    void (*part)(FILE *f);
} parts[] = {{"@STYLE_DIGEST@", write_style_digest},
             {"@SCRIPT_DIGEST@", write_script_digest},
             {"@STYLE@", write_style},
             {"@SCRIPT@", write_script}};
enum { N_PART = sizeof parts / sizeof parts[0] };

/* Writes what the mark at `at` stands for; returns its length, 0: no mark is there. */
static size_t write_mark(FILE *f, const char *at, const char *title, const char *json) {
    static const char of_title[] = "@TITLE@", of_json[] = "@DATA@";
    for (int i = 0; i < N_PART; i++) {
        const size_t n = strlen(parts[i].mark);
        if (strncmp(at, parts[i].mark, n) != 0) continue;
        parts[i].part(f);
        return n;
    }
    if (strncmp(at, of_title, sizeof of_title - 1) == 0) {
        write_text(f, title);
        return sizeof of_title - 1;
    }
    if (strncmp(at, of_json, sizeof of_json - 1) == 0) {
        write_json(f, json);
        return sizeof of_json - 1;
    }
    return 0;
}

void hp_report_page(FILE *f, const char *title, const char *json) {
    for (const char *at = hp_report_template; *at;) {
        const size_t n = *at == '@' ? write_mark(f, at, title, json) : 0;
        if (!n) fputc(*at, f);
        at += n ? n : 1;
    }
}
