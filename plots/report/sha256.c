/* sha256.c - SHA-256, FIPS 180-4: section 5.1.1 pads, 6.2.2 compresses. Its constants are the first 32 bits
 * of the fractional parts of the roots of primes. */
#include "plots/report/sha256.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64, DIGEST = 32 };

typedef struct sha256 {
    uint32_t h[WORDS];
    uint64_t bytes; /* so far */
    uint8_t block[BLOCK];
} sha256;

static const uint32_t k[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void extend_message(const uint8_t *block, uint32_t w[ROUNDS]) {
    for (int t = 0; t < 16; t++) w[t] = big_endian(block + 4 * t);
    for (int t = 16; t < ROUNDS; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void compress(sha256 *s) {
    uint32_t w[ROUNDS], v[WORDS];
    extend_message(s->block, w);
    memcpy(v, s->h, sizeof v);
    for (int t = 0; t < ROUNDS; t++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t t1 =
            v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
        const uint32_t t2 =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, sizeof v - sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < WORDS; i++) s->h[i] += v[i];
}

static void add_byte(sha256 *s, uint8_t byte) {
    s->block[s->bytes++ % BLOCK] = byte;
    if (s->bytes % BLOCK == 0) compress(s);
}

static void finish(sha256 *s, uint8_t digest[DIGEST]) {
    const uint64_t bits = 8 * s->bytes;
    add_byte(s, 0x80);
    while (s->bytes % BLOCK != BLOCK - 8) add_byte(s, 0);
    for (int i = 7; i >= 0; i--) add_byte(s, (uint8_t)(bits >> 8 * i));
    for (int i = 0; i < DIGEST; i++) digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

static void write_base64(const uint8_t *bytes, int n, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < n; i += 3) {
        const uint32_t group = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < n ? bytes[i + 2] : 0u);
        for (int d = 0; d < 4; d++) *out++ = i + d <= n ? digits[group >> (18 - 6 * d) & 63] : '=';
    }
    *out = 0;
}

const char *hp_sha256_base64(const char *const *text, int n, char out[HP_SHA256_TEXT]) {
    sha256 s = {.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                      0x5be0cd19}};
    uint8_t digest[DIGEST];
    for (int i = 0; i < n; i++)
        for (const char *c = text[i]; *c; c++) add_byte(&s, (uint8_t)*c);
    finish(&s, digest);
    write_base64(digest, DIGEST, out);
    return out;
}
