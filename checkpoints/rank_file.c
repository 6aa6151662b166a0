/* rank_file.c - a rank's pieces as a safetensors file, hashed while it is written. */
#include "checkpoints/checkpoint_folder.h"

#include "base/st_write.h"

static hp_status write_file(hp_disk_file *f, const char *head, size_t head_bytes, const void *data,
                            int64_t bytes, hp_error *err) {
    HP_TRY(hp_disk_append(f, head, head_bytes, err));
    HP_TRY(hp_disk_append(f, data, (size_t)bytes, err));
    return hp_disk_sync(f, err);
}

static hp_st_tensor tensor_of(hp_arena *a, const hp_graph *g, const hp_state_piece *s, hp_dtype dtype) {
    return (hp_st_tensor){.name = hp_state_name(a, g, s),
                          .dtype = dtype == HP_F64 ? HP_ST_F64 : HP_ST_F32,
                          .n_dim = 1,
                          .dim = {s->count}};
}

/* The parameter's shape, as "64,3,7,7". Pieces are ranges of its elements. */
static hp_st_note shape_of(hp_arena *a, const hp_graph *g, const hp_state_piece *s) {
    const hp_param *p = &g->param[s->param];
    const char *text = "";
    for (int i = 0; i < p->n_dim; i++)
        text = hp_arena_printf(a, "%s%s%lld", text, i ? "," : "", (long long)p->dim[i]);
    return (hp_st_note){.key = p->name, .text = text};
}

hp_status hp_checkpoint_put(const hp_disk_ops *disk, const char *dir, int64_t step, int64_t rank,
                            const hp_graph *g, const hp_state_piece *piece, int n, hp_dtype dtype,
                            const void *data, hp_chunks *chunks, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_st_tensor *tensor = HP_NEW(a, hp_st_tensor, n + 1);
    const char *part = hp_checkpoint_path(a, dir, step, true);
    int64_t bytes = 0;
    int n_tensor = 0, n_note = 0;
    hp_st_note *note = HP_NEW(a, hp_st_note, n + 1);
    char *head = NULL;
    size_t head_bytes = 0;
    hp_disk_file f = {.fd = -1};
    for (int i = 0; i < n; i++)
        if (piece[i].home) {
            tensor[n_tensor++] = tensor_of(a, g, &piece[i], dtype);
            bytes += piece[i].count * hp_dtype_bytes(dtype);
            if (piece[i].kind == HP_STATE_WEIGHTS || piece[i].kind == HP_STATE_STATISTICS)
                note[n_note++] = shape_of(a, g, &piece[i]);
        }
    hp_status s = hp_disk_folder(disk, part, err);
    if (s == HP_OK) s = hp_safetensors_head(note, n_note, tensor, n_tensor, &head, &head_bytes, err);
    if (s == HP_OK)
        s = hp_disk_create(disk, hp_checkpoint_file(a, part, rank), (int64_t)head_bytes + bytes, &f, err);
    if (s == HP_OK) s = write_file(&f, head, head_bytes, data, bytes, err);
    *chunks = f.chunks;
    f.chunks.hash = NULL;
    free(head);
    hp_disk_close(&f);
    hp_arena_free(a);
    return s;
}
