/* launch_capture.h - runs another program and captures its output, with a timeout. */
#ifndef HP_LAUNCH_CAPTURE_H
#define HP_LAUNCH_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

/* Runs argv (NULL-terminated, argv[0] found in PATH) without a shell, with /dev/null as stdin and stderr, and
 * keeps the first `size`-1 bytes of its stdout. Returns false if it cannot be started, fails, or takes longer
 * than `limit_s` (it is then killed). */
bool cli_capture(const char *const *argv, double limit_s, char *out, size_t size);

/* Is `program` an executable in PATH? */
bool cli_in_path(const char *program);

#endif
