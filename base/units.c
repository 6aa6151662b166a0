/* units.c - parses and prints sizes, times and counts. */
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>

hp_status hp_parse_double(const char *text, const char *what, double low, double high, double *value,
                          hp_error *err) {
    char *end = NULL;
    errno = 0;
    const double v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= low && v <= high))
        return hp_fail(err, HP_EUSAGE, "%s: '%.40s' is not a number from %g to %g", what, text, low, high);
    *value = v;
    return HP_OK;
}

hp_status hp_parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                       hp_error *err) {
    char *end = NULL;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < low || v > high)
        return hp_fail(err, HP_EUSAGE, "%s: '%.40s' is not a whole number from %lld to %lld", what, text,
                       (long long)low, (long long)high);
    *value = v;
    return HP_OK;
}

hp_status hp_parse_bytes(const char *text, int64_t *bytes, hp_error *err) {
    static const char prefixes[] = "kMGT";
    char *end = NULL;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || errno || !(v >= 0)) goto bad;
    const char *p = *end == 'K' ? prefixes : (*end ? strchr(prefixes, *end) : NULL);
    if (p) {
        const double base = end[1] == 'i' ? 1024.0 : 1000.0;
        v *= pow(base, (double)(p - prefixes + 1));
        end += base > 1000 ? 2 : 1;
    }
    if (*end == 'B') end++;
    if (*end || !(v < 9e18)) goto bad;
    *bytes = (int64_t)v;
    return HP_OK;
bad:
    return hp_fail(err, HP_EUSAGE, "'%.40s' is not a size: write for example 25M, 4G (4e9) or 4Gi (2^32)",
                   text);
}

static const char *format_scaled(double v, double base, const char *const names[], int n, char out[32]) {
    int k = 0;
    while (k + 1 < n && fabs(v) >= 999.5) {
        v /= base;
        k++;
    }
    const double a = fabs(v);
    snprintf(out, 32, "%.*f %s", a >= 99.95 || a == 0 ? 0 : a >= 9.995 ? 1 : 2, v, names[k]);
    return out;
}

const char *hp_format_bytes(double bytes, char out[32]) {
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    return format_scaled(bytes, 1000, names, 6, out);
}

const char *hp_format_seconds(double seconds, char out[32]) {
    static const char *const names[] = {"ns", "us", "ms", "s"};
    return format_scaled(seconds * 1e9, 1000, names, 4, out);
}
