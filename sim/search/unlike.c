/* unlike.c - finds every rank's device by the rule that places the program. */
#include "sim/search/unlike.h"

#include "plan/lower/lower_placement.h"

#include <string.h>

void hp_unlike_places(const hp_strategy *s, const hp_machine *m, hp_unlike_place place[HP_MAX_STAGES]) {
    hp_arena *scratch = hp_arena_new();
    const int roles = hp_strategy_roles(s);
    const hp_placement at = hp_placement_of_strategy(scratch, s, m);
    memset(place, 0, sizeof *place * HP_MAX_STAGES);
    for (int rank = 0; rank < hp_strategy_ranks(s); rank++) {
        const int device = hp_placement_device(&at, rank);
        int position, part;
        hp_role_place(s, rank % roles, 0, &position, &part);
        double *speed = &place[position].speed[hp_machine_class_at(m, device)];
        const double own = hp_machine_speed_at(m, device);
        if (*speed == 0 || own < *speed) *speed = own;
    }
    hp_arena_free(scratch);
}
