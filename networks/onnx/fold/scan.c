/* scan.c - validates protobuf's wire format (protobuf.dev, "Encoding") before it is unpacked. */
#include "networks/onnx/onnx_file.h"

#include <stdint.h>

enum { MOST_DEPTH = 16, MOST_MESSAGES = 1 << 20 };
enum { WIRE_VARINT, WIRE_64BIT, WIRE_BYTES, WIRE_32BIT = 5 };

typedef struct span {
    const unsigned char *at, *end;
} span;

typedef struct scan {
    int messages;
    const char *why;
} scan;

static bool read_varint(span *s, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 70 && s->at < s->end; shift += 7) {
        const unsigned char byte = *s->at++;
        *value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

static bool skip_bytes(span *s, uint64_t bytes) {
    if (bytes > (uint64_t)(s->end - s->at)) return false;
    s->at += bytes;
    return true;
}

/* Advances past a field's value; `inside` is the contents of a length-delimited one. */
static bool skip_value(span *s, int wire, span *inside) {
    uint64_t n = 0;
    *inside = (span){s->at, s->at};
    if (wire == WIRE_64BIT) return skip_bytes(s, 8);
    if (wire == WIRE_32BIT) return skip_bytes(s, 4);
    if ((wire != WIRE_VARINT && wire != WIRE_BYTES) || !read_varint(s, &n)) return false;
    if (wire == WIRE_VARINT) return true;
    inside->at = s->at;
    if (!skip_bytes(s, n)) return false;
    inside->end = s->at;
    return true;
}

static bool scan_message(scan *state, const ProtobufCMessageDescriptor *type, span s, int depth) {
    if (depth > MOST_DEPTH || ++state->messages > MOST_MESSAGES) {
        state->why = depth > MOST_DEPTH ? "its messages are nested too deep" : "it has too many messages";
        return false;
    }
    while (s.at < s.end) {
        uint64_t key;
        span inside;
        if (!read_varint(&s, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3 ||
            !skip_value(&s, (int)(key & 7), &inside)) {
            state->why = "it is cut off or damaged";
            return false;
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(key >> 3));
        if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE || (key & 7) != WIRE_BYTES) continue;
        if (!scan_message(state, field->descriptor, inside, depth + 1)) return false;
    }
    return true;
}

bool onnx_scan(const ProtobufCMessageDescriptor *type, const void *data, size_t size, const char **why) {
    scan state = {0, NULL};
    const span whole = {data, (const unsigned char *)data + size};
    const bool good = scan_message(&state, type, whole, 0);
    *why = state.why;
    return good;
}
