/* onnx_file.c - maps a model file and unpacks it with protobuf-c into an arena, within a memory budget. */
#include "networks/onnx/onnx_file.h"
#include "base/input.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

hp_status onnx_file_open(const char *path, const void **data, size_t *size, hp_error *err) {
    struct stat about;
    const int fd = hp_input_open(path);
    if (fd < 0 || fstat(fd, &about) != 0) {
        const int reason = errno;
        if (fd >= 0) close(fd);
        return hp_fail(err, HP_EDATA, "cannot read %.500s: %s; check the path", path, strerror(reason));
    }
    void *map = MAP_FAILED;
    if (S_ISREG(about.st_mode) && about.st_size > 0)
        map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return hp_fail(err, HP_EDATA, "%.500s is empty or no file: give an ONNX model", path);
    *data = map;
    *size = (size_t)about.st_size;
    return HP_OK;
}

void onnx_file_close(const void *data, size_t size) {
    if (data) munmap((void *)(uintptr_t)data, size);
}

/* --- protobuf-c's allocator: the arena, within the budget --- */

typedef struct budget {
    hp_arena *arena;
    size_t left;
} budget;

static void *budget_alloc(void *self, size_t size) {
    budget *b = self;
    if (size > b->left) return NULL;
    b->left -= size;
    return hp_arena_alloc(b->arena, size);
}

static void budget_free(void *self, void *pointer) {
    (void)self, (void)pointer; /* freed with the arena */
}

/* Structures of small messages are several times larger than their bytes; weights are copied once. */
static size_t budget_of(size_t file_bytes) {
    const size_t structures = (size_t)512 << 20;
    return structures + 2 * file_bytes;
}

hp_status onnx_file_parse(hp_arena *arena, const char *file, const void *data, size_t size,
                          Onnx__ModelProto **model, hp_error *err) {
    enum { IR_VERSION = 1 << 3 }; /* the tag at the start of every model: field 1, a number */
    const char *why = NULL;
    if (size > SIZE_MAX / 4 || !onnx_scan(&onnx__model_proto__descriptor, data, size, &why)) {
        const bool begun = size > 0 && *(const unsigned char *)data == IR_VERSION;
        bool weights;
        const char *kind = begun ? NULL : hp_file_kind(data, size, &weights);
        if (kind)
            return hp_fail(err, HP_EDATA, "%s: no ONNX model: it is %s%s", file, kind,
                           weights ? "; export the network with torch.onnx.export or tf2onnx" : "");
        return hp_fail(err, HP_EDATA, "%s: no ONNX model: %s; export it again", file,
                       why ? why : "too large");
    }
    budget b = {arena, budget_of(size)};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &b};
    *model = onnx__model_proto__unpack(&allocator, size, data);
    if (!*model)
        return hp_fail(err, HP_EDATA, "%s: no ONNX model: its fields have wrong types; export it again",
                       file);
    if (!(*model)->graph)
        return hp_fail(err, HP_EDATA, "%s: no ONNX model: it has no graph; export it again", file);
    HP_TRY(onnx_sort(arena, file, (*model)->graph, err));
    onnx_tie(arena, (*model)->graph);
    return HP_OK;
}
