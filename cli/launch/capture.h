/* capture.h - asking another program one question: run it, keep what it says, never wait for ever. */
#ifndef HP_CAPTURE_H
#define HP_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

/* Runs argv (NULL-terminated, argv[0] found in PATH) without a shell, stdin and stderr being /dev/null, and
 * keeps the first `size`-1 bytes of its stdout. False when it cannot be started, fails, or takes longer than
 * `limit_s` (it is killed then). */
bool cli_capture(const char *const *argv, double limit_s, char *out, size_t size);

/* Is `program` an executable in PATH? */
bool cli_in_path(const char *program);

#endif
