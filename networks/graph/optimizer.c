/* optimizer.c - the table of optimisers (optimizer.h). */
#include "networks/graph/optimizer.h"

#include <string.h>

const char hp_optimizer_names[] =
#define STATE(...)
#define OPTIMIZER(id, name, ...) "|" name
#include "networks/graph/optimizers.def"
    ;

enum { DECAYS_ALL, DECAYS_MATRICES };

const hp_optimizer_info hp_optimizer_infos[HP_OPTIMIZERS] = {
#define STATE(...)
#define OPTIMIZER(id, name, function, first, states, operations, decays, linear, meaning)                    \
    [HP_##                                                                                                   \
        id] = {name,   HP_OPTIMIZER_##first, states, operations, DECAYS_##decays == DECAYS_MATRICES, linear, \
               meaning},
#include "networks/graph/optimizers.def"
};

hp_status hp_optimizer_find(const char *name, int32_t *optimizer, hp_error *err) {
    char known[128] = "";
    *optimizer = HP_SGD;
    if (!name) return HP_OK;
    for (int32_t i = 0; i < HP_OPTIMIZERS; i++) {
        const size_t used = strlen(known);
        if (strcmp(hp_optimizer_infos[i].name, name) == 0) {
            *optimizer = i;
            return HP_OK;
        }
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", hp_optimizer_infos[i].name);
    }
    return hp_fail(err, HP_EUSAGE, "--optimizer '%.40s' is not one of %s", name, known);
}
