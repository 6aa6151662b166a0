/* status.c - formats error messages. */
#include "base/status.h"

#include <stdarg.h>
#include <string.h>

hp_status hp_fail(hp_error *err, hp_status code, const char *fmt, ...) {
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

hp_status hp_fail_in(hp_error *err, const char *context) {
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    snprintf(err->text, sizeof err->text, "%.200s: %.800s", context, old);
    return err->code;
}
