/* message.h - the yardsticks of messages: ranks 0 and 1 send one back and forth, in wall time. */
#ifndef HP_MESSAGE_H
#define HP_MESSAGE_H

#include "exec/yardstick/wait.h"

enum { HP_YARD_SMALL_BYTES = 64, HP_YARD_LARGE_BYTES = 256 << 10 };

/* Seconds of a round trip of a small message (a mean) and a large one, on rank 0; 0 on the others. The first
 * small message, which may find rank 1 late, does not count. `scratch`: HP_YARD_LARGE_BYTES. Collective: over
 * ranks 0 and 1; the others return at once. Errors: as hp_yard_wait. */
hp_status hp_yard_messages(const hp_yard_waiter *w, void *scratch, double *small_s, double *large_s,
                           hp_error *err);

#endif
