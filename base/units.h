/* units.h - sizes and numbers in human-readable form. `4G` = 4e9, `4Gi` = 2^32. */
#ifndef HP_UNITS_H
#define HP_UNITS_H

#include "base/status.h"

#include <stdint.h>

/* Parses bytes: digits with an optional fraction, a suffix k M G T (powers of 1000) or Ki Mi Gi Ti (of 1024),
 * and an optional B. */
hp_status hp_parse_bytes(const char *text, int64_t *bytes, hp_error *err);
/* Parses an integer in [low, high]; `what` names it in the error. */
hp_status hp_parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                       hp_error *err);
/* Parses a finite number in [low, high]; `what` names it in the error. Errors: HP_EUSAGE. */
hp_status hp_parse_double(const char *text, const char *what, double low, double high, double *value,
                          hp_error *err);

/* Formats a size ("1.23 GB") or a time ("412 ms") with three significant digits; `out` holds >= 32 chars. */
const char *hp_format_bytes(double bytes, char out[32]);
const char *hp_format_seconds(double seconds, char out[32]);

#endif
