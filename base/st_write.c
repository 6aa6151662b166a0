/* st_write.c - writes safetensors files under a temporary name, then syncs and renames them; see
 * st_write.h. */
#include "base/st_write.h"
#include "base/alloc.h"

#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

const hp_st_info hp_st_infos[HP_ST_DTYPES] = {
    [HP_ST_F64] = {"F64", 8},   [HP_ST_F32] = {"F32", 4}, [HP_ST_F16] = {"F16", 2},
    [HP_ST_BF16] = {"BF16", 2}, [HP_ST_I64] = {"I64", 8}, [HP_ST_I32] = {"I32", 4},
    [HP_ST_I16] = {"I16", 2},   [HP_ST_I8] = {"I8", 1},   [HP_ST_U64] = {"U64", 8},
    [HP_ST_U32] = {"U32", 4},   [HP_ST_U16] = {"U16", 2}, [HP_ST_U8] = {"U8", 1},
    [HP_ST_BOOL] = {"BOOL", 1},
};

static int64_t elements(const hp_st_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dim; i++) n *= t->dim[i];
    return n;
}

static int64_t bytes_of(const hp_st_tensor *t) {
    return elements(t) * hp_st_infos[t->dtype].bytes;
}

static json_t *describe(const hp_st_tensor *t, int64_t begin) {
    json_t *shape = json_array();
    for (int i = 0; i < t->n_dim; i++) json_array_append_new(shape, json_integer(t->dim[i]));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", hp_st_infos[t->dtype].name, "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)(begin + bytes_of(t)));
}

typedef struct file_content {
    const hp_st_note *note;
    const hp_st_tensor *tensor;
    int n_note, n;
    const hp_st_source *source;
} file_content;

static json_t *notes_of(const file_content *c) {
    json_t *notes = json_pack("{s:s}", "format", "pt"); /* expected by PyTorch's tools */
    for (int i = 0; i < c->n_note; i++)
        json_object_set_new(notes, c->note[i].key, json_string(c->note[i].text));
    return notes;
}

enum { PREFIX = 8 /* size of the header length field, in bytes */ };

static json_t *describe_all(const file_content *c) {
    json_t *root = json_object();
    json_object_set_new(root, "__metadata__", notes_of(c));
    int64_t at = 0;
    for (int i = 0; i < c->n; i++) {
        HP_ASSERT(!json_object_get(root, c->tensor[i].name));
        json_object_set_new(root, c->tensor[i].name, describe(&c->tensor[i], at));
        at += bytes_of(&c->tensor[i]);
    }
    return root;
}

static hp_status head_of(const file_content *c, char **head, size_t *bytes, hp_error *err) {
    json_t *root = describe_all(c);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    HP_ASSERT(text);
    const size_t used = strlen(text), length = (used + 7) & ~(size_t)7;
    *bytes = PREFIX + length;
    *head = hp_alloc(*bytes);
    for (int i = 0; i < PREFIX; i++) (*head)[i] = (char)((uint64_t)length >> 8 * i & 255);
    memset(*head + PREFIX, ' ', length);
    memcpy(*head + PREFIX, text, used);
    free(text);
    if (length <= HP_ST_MAX_HEADER) return HP_OK;
    free(*head);
    return hp_fail(err, HP_ECREATE, "the names of %d tensors do not fit into a header of %d bytes", c->n,
                   HP_ST_MAX_HEADER);
}

hp_status hp_safetensors_head(const hp_st_note *note, int n_note, const hp_st_tensor *tensor, int n,
                              char **head, size_t *bytes, hp_error *err) {
    const file_content c = {note, tensor, n_note, n, NULL};
    return head_of(&c, head, bytes, err);
}

static hp_status io_failed(const char *path, hp_error *err) {
    return hp_fail(err, HP_EIO, "writing %s failed: %s; free some space or give another folder", path,
                   strerror(errno));
}

static hp_status write_tensors(FILE *f, const char *tmp, const file_content *c, hp_error *err) {
    for (int i = 0; i < c->n; i++) {
        const size_t bytes = (size_t)bytes_of(&c->tensor[i]);
        const void *data = c->source->data(c->source->self, i, err);
        if (!data) return err ? err->code : HP_EIO;
        if (bytes && fwrite(data, 1, bytes, f) != bytes) return io_failed(tmp, err);
    }
    return HP_OK;
}

static hp_status write_body(FILE *f, const char *tmp, const file_content *c, hp_error *err) {
    size_t bytes;
    char *head;
    if (head_of(c, &head, &bytes, err) != HP_OK) return err ? hp_fail_in(err, tmp) : HP_ECREATE;
    const int ok = fwrite(head, 1, bytes, f) == bytes;
    free(head);
    if (!ok) return io_failed(tmp, err);
    HP_TRY(write_tensors(f, tmp, c, err));
    return fflush(f) == 0 ? HP_OK : io_failed(tmp, err);
}

hp_status hp_safetensors_write_noted(const char *path, const hp_st_note *note, int n_note,
                                     const hp_st_tensor *tensor, int n, const hp_st_source *source,
                                     hp_error *err) {
    const file_content content = {note, tensor, n_note, n, source};
    char tmp[HP_NEW_FILE_TEMPORARY];
    int fd;
    HP_TRY(hp_new_file_create(path, tmp, &fd, err));
    FILE *f = fdopen(fd, "wb");
    HP_ASSERT(f);
    hp_status s = write_body(f, tmp, &content, err);
    if (fclose(f) != 0 && s == HP_OK) s = io_failed(tmp, err);
    if (s == HP_OK) s = hp_new_file_commit(tmp, path, err);
    if (s != HP_OK) unlink(tmp);
    return s;
}

hp_status hp_safetensors_write(const char *path, const hp_st_tensor *tensor, int n,
                               const hp_st_source *source, hp_error *err) {
    return hp_safetensors_write_noted(path, NULL, 0, tensor, n, source, err);
}
