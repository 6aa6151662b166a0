/* meetings.h - which tasks meet: the two ends of a message, the calls of a collective. Nothing moves before all of
 * them have begun; until then the early ones wait. */
#ifndef HP_MEETINGS_H
#define HP_MEETINGS_H

#include "plan/program/wiring.h"

/* Tasks with one number meet; -1: a task that meets none. Everything lives in `arena`. Cost: linear. */
typedef struct hp_meetings {
    const hp_wiring *wiring;
    int32_t *first_call; /* per group: the number of its first call */
    int32_t **message;   /* per role and task: the number of a message's end; -1 */
} hp_meetings;

hp_meetings hp_meetings_new(hp_arena *arena, const hp_program *p);
int32_t hp_meeting_of(const hp_meetings *m, int role, int task);
/* Of all data replicas together; otherwise each replica has its own. */
bool hp_meeting_is_world(const hp_meetings *m, int role, int task);

#endif
