/* trace_text.h - makes strings from untrusted files safe for a terminal, JSON, SVG and CSV. */
#ifndef HP_TRACE_TEXT_H
#define HP_TRACE_TEXT_H

#include "base/arena.h"

#include <stdio.h>

/* A copy in which every control character (C0, DEL, C1), bidirectional override, line separator and malformed
 * UTF-8 byte is '?', cut after 500 bytes. It may still contain quotes, backticks and markup. */
const char *hp_text_clean(hp_arena *arena, const char *text);

/* Writes one CSV cell (RFC 4180), quoted; a cell that a spreadsheet would interpret as a formula gets a
 * leading apostrophe. */
void hp_text_csv(FILE *f, const char *text);

#endif
