/* page.h - the report's page: one HTML file that loads nothing. Its content security policy admits its own
 * style and script, by their digests, and nothing else; data are JSON in a block that no browser executes. */
#ifndef HP_PAGE_H
#define HP_PAGE_H

#include "base/status.h"

#include <stdio.h>

/* Writes the page. title: any text; json: one JSON value, ASCII. Errors of writing stay with `f`. */
void hp_report_page(FILE *f, const char *title, const char *json);

#endif
