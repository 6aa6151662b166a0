/* analyser.h - included before every file that clang's static analyser reads. It tells the analyser that
 * hp_fail returns the status it is given, never HP_OK; otherwise errors would look like successes. */
#define _GNU_SOURCE                /* some files want it, before the first header */
#if __has_include("base/status.h") /* not every program of a test sees it */
#include "base/status.h"
#endif

#define hp_fail(err, code, ...) ((void)(hp_fail)(err, code, __VA_ARGS__), (code))
