/* input.c - opens files without waiting for a pipe's writer; reads do wait. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hp_input_open(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

FILE *hp_input_fopen(const char *path) {
    const int fd = hp_input_open(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) {
        const int why = errno;
        close(fd);
        errno = why;
    }
    return f;
}

enum { MAX_BYTES = 64 << 20 }; /* rejects larger files; no cost table has a million rows */

hp_status hp_text_file(hp_arena *arena, const char *path, const char *what, const char *hint, char **text,
                       hp_error *err) {
    FILE *f = hp_input_fopen(path);
    if (!f) return hp_fail(err, HP_EDATA, "cannot read %s %s: %s%s", what, path, strerror(errno), hint);
    struct stat st;
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES) {
        fclose(f);
        return hp_fail(err, HP_EDATA, "%s is not a %s (a text file of at most %d MB)", path, what,
                       MAX_BYTES >> 20);
    }
    *text = hp_arena_alloc(arena, (size_t)st.st_size + 1);
    const size_t got = fread(*text, 1, (size_t)st.st_size, f);
    fclose(f);
    if (strlen(*text) == got) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s contains zero bytes, so it is not a %s%s", path, what, hint);
}

/* --- what a file is: magic numbers are the formats' own, as file(1) knows them --- */

#define BYTES(text) text, sizeof text - 1
static const struct {
    size_t at;
    const char *magic;
    size_t n;
    const char *kind;
    bool weights; /* do such files often hold weights? */
} kinds[] = {
    {0, BYTES("SQLite format 3"), "an SQLite database, as plans, models and runs of hplan are", false},
    {0, BYTES("PK\3\4"), "a zip archive, as PyTorch's .pt and .pth or NumPy's .npz", true},
    {0, BYTES("\x80\2"), "a pickle, as PyTorch's older .pt and .pth", true},
    {0, BYTES("\x80\3"), "a pickle of Python", true},
    {0, BYTES("\x80\4"), "a pickle of Python", true},
    {0, BYTES("\x80\5"), "a pickle of Python", true},
    {0, BYTES("\x93NUMPY"), "an array of NumPy (.npy)", true},
    {0, BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file, as Keras writes", true},
    {0, BYTES("GGUF"), "a GGUF file", true},
    {4, BYTES("TFL3"), "a TensorFlow Lite model", true},
    {0, BYTES("\x1f\x8b"), "compressed with gzip (decompress it)", false},
    {0, BYTES("\x28\xb5\x2f\xfd"), "compressed with zstd (decompress it)", false},
    {0,
     BYTES("\xfd"
           "7zXZ"),
     "compressed with xz (decompress it)", false},
    {0, BYTES("BZh"), "compressed with bzip2 (decompress it)", false},
    {0, BYTES("7z\xbc\xaf"), "a 7z archive (unpack it)", false},
    {257, BYTES("ustar"), "a tar archive (unpack it)", false},
    {0, BYTES("version https://git-lfs"), "a pointer of Git LFS in the file's place (git lfs pull)", false},
    {0, BYTES("<!DOCTYPE"), "a web page, not the file that it links to", false},
    {0, BYTES("<html"), "a web page, not the file that it links to", false},
    {0, BYTES("\x89PNG"), "a PNG image", false},
    {0, BYTES("\xff\xd8\xff"), "a JPEG image", false},
    {0, BYTES("%PDF"), "a PDF document", false},
    {0,
     BYTES("\x7f"
           "ELF"),
     "a program", false},
};

static bool is_text(const unsigned char *data, size_t n) {
    for (size_t i = 0; i < n && i < 64; i++)
        if ((data[i] < ' ' || data[i] > '~') && data[i] != '\t' && data[i] != '\n' && data[i] != '\r')
            return false;
    return n > 0;
}

/* protobuf writes fields in order: field 1, the format version, precedes field 2, the producer's name. */
static bool is_onnx(const unsigned char *data, size_t n) {
    return n > 4 && data[0] == 0x08 && data[1] > 0 && data[1] < 0x40 && (data[2] == 0x12 || data[2] == 0x3a);
}

/* A header length, then JSON. */
static bool is_safetensors(const unsigned char *data, size_t n) {
    return n > 10 && !data[4] && !data[5] && !data[6] && !data[7] && data[8] == '{' && data[9] == '"';
}

const char *hp_file_kind(const unsigned char *data, size_t n, bool *weights) {
    *weights = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n >= kinds[i].at + kinds[i].n && memcmp(data + kinds[i].at, kinds[i].magic, kinds[i].n) == 0) {
            *weights = kinds[i].weights;
            return kinds[i].kind;
        }
    if (is_safetensors(data, n)) return "a safetensors file, which has weights and no network";
    if (is_onnx(data, n)) return "an ONNX model, whose name should end in .onnx";
    return is_text(data, n) ? "a text" : NULL;
}
