/* PLACEHOLDER until the importer's author replaces this file. */
#include "plan/graph_json.h"
const char *hp_graph_json(hp_arena *arena, const hp_graph *g) {
    (void)g;
    return hp_arena_strdup(arena, "");
}
hp_status hp_graph_from_json(hp_arena *arena, const char *text, hp_graph **graph, hp_error *err) {
    (void)arena, (void)text, (void)graph;
    return hp_fail(err, HP_EUNAVAIL, "placeholder");
}
hp_status hp_model_read(hp_arena *arena, const char *path, int image_h, int image_w, hp_graph **graph,
                        hp_error *err) {
    (void)arena, (void)path, (void)image_h, (void)image_w, (void)graph;
    return hp_fail(err, HP_EUNAVAIL, "placeholder");
}
