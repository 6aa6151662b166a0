/* meetings.h - which tasks meet: the two ends of a message, the calls of a collective. Nothing moves before
 * all of them have started; until then the early ones wait. */
#ifndef HP_MEETINGS_H
#define HP_MEETINGS_H

#include "plan/program/wiring.h"

/* Tasks with equal numbers meet; -1: the task meets none. Everything lives in `arena`. Cost: linear. */
typedef struct hp_meetings {
    const hp_wiring *wiring;
    int32_t *first_call; /* number of the first call of each group */
    int32_t **message;   /* number of a message's end, per role and task; -1: none */
} hp_meetings;

hp_meetings hp_meetings_new(hp_arena *arena, const hp_program *p);
int32_t hp_meeting_of(const hp_meetings *m, int role, int task);
/* Does it span all data replicas? Otherwise each replica has its own. */
bool hp_meeting_is_world(const hp_meetings *m, int role, int task);

#endif
