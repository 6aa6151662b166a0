/* device_class.c - the classes of GPUs and links, and how names map to them. */
#include "machines/device_class.h"

#include "machines/data_sheets.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the words of a name match several models, the first wins, so the best-selling one comes first. The last
 * figure is the published TDP in watts, or its maximum if it is configurable. For H100 PCIe it is from
 * NVIDIA's product brief; the others were not checked against their data sheets. */
static const hp_gpu_model models[] = {
    {CLASS_A100_40, LINK_NVLINK, LINK_HDR, 400},
    {CLASS_A100_80, LINK_NVLINK, LINK_HDR, 400},
    {CLASS_A100_80_PCIE, LINK_PCIE4, LINK_HDR, 300},
    {CLASS_H100, LINK_NVSWITCH_H, LINK_NDR, 700},
    {CLASS_H100_PCIE, LINK_PCIE5, LINK_NDR, 350},
    {CLASS_H100_NVL, LINK_PCIE5, LINK_NDR, 400},
    {CLASS_H200, LINK_NVSWITCH_H, LINK_NDR, 700},
    {CLASS_L40S, LINK_PCIE4, LINK_HDR, 350},
    {CLASS_B200, LINK_NVSWITCH_H, LINK_NDR, 1000}, /* link rate: at least H100's */
    {CLASS_RTX_PRO_6000, LINK_PCIE5, LINK_NDR, 600},
    {CLASS_RTX_3090, LINK_PCIE4, LINK_HDR, 350},
    {CLASS_RTX_4090, LINK_PCIE4, LINK_HDR, 450},
    {CLASS_RTX_5090, LINK_PCIE5, LINK_HDR, 575},
    {CLASS_L4, LINK_PCIE4, LINK_HDR, 72},
    {CLASS_A10, LINK_PCIE4, LINK_HDR, 150},
    {CLASS_A30, LINK_PCIE4, LINK_HDR, 165},
    {CLASS_A40, LINK_PCIE4, LINK_HDR, 300},
    {CLASS_V100_16, LINK_NVLINK_V, LINK_EDR, 300},
    {CLASS_V100_32, LINK_NVLINK_V, LINK_EDR, 300},
    {CLASS_V100_16_PCIE, LINK_PCIE, LINK_EDR, 250},
    {CLASS_V100_32_PCIE, LINK_PCIE, LINK_EDR, 250},
    {CLASS_T4, LINK_PCIE, LINK_EDR, 70},
    {CLASS_P40, LINK_PCIE, LINK_EDR, 250},
};
enum { N_MODELS = sizeof models / sizeof models[0] };

const hp_gpu_model *hp_gpu_model_at(int i) {
    return i >= 0 && i < N_MODELS ? &models[i] : NULL;
}

const char *hp_device_class_like(const char *class) {
    for (int i = 0; i < N_MODELS; i++)
        if (strcmp(models[i].device.name, class) == 0) return models[i].device.like;
    return "";
}

double hp_device_class_tdp(const hp_device_class *d) {
    for (int i = 0; i < N_MODELS; i++)
        if (strcmp(models[i].device.name, d->name) == 0) return models[i].tdp_w;
    return 0;
}

/* --- names --- */

enum { MAX_WORDS = 16, MAX_WORD = 24 };
typedef struct words {
    int n;
    char word[MAX_WORDS][MAX_WORD];
} words;

/* "rtx4090" is "rtx 4090". */
static int series_of(const char *word) {
    static const char *const series[] = {"rtx", "gtx"};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        const size_t n = strlen(series[i]);
        if (strncmp(word, series[i], n) == 0 && isdigit((unsigned char)word[n])) return (int)n;
    }
    return 0;
}

static void split_last(words *w) {
    char *last = w->word[w->n - 1];
    const int series = series_of(last);
    if (!series || w->n == MAX_WORDS) return;
    memcpy(w->word[w->n++], last + series, strlen(last + series) + 1);
    last[series] = '\0';
}

/* Runs of letters and digits in lower case; "40gb" becomes "40". */
static words words_of(const char *name) {
    words w = {0};
    while (*name && w.n < MAX_WORDS) {
        int k = 0;
        char *word = w.word[w.n];
        while (*name && !isalnum((unsigned char)*name)) name++;
        for (; isalnum((unsigned char)*name); name++)
            if (k + 1 < MAX_WORD) word[k++] = (char)tolower((unsigned char)*name);
        if (k > 2 && strcmp(word + k - 2, "gb") == 0 && isdigit((unsigned char)word[0])) word[k -= 2] = '\0';
        if (!k) continue;
        w.n++;
        split_last(&w);
    }
    return w;
}

static bool has_word(const words *w, const char *word) {
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->word[i], word) == 0) return true;
    return false;
}

static bool has_digit(const char *word) {
    return strpbrk(word, "0123456789") != NULL;
}

/* Number of words of a class's name that occur in the given name. 0: it is another GPU, because a word up to
 * the first number is missing. */
static int common_words(const words *class, const words *name) {
    int n = 0;
    for (int i = 0; i < class->n; i++) {
        if (!has_word(name, class->word[i])) return 0;
        if (has_digit(class->word[i])) break;
    }
    for (int i = 0; i < class->n; i++) n += has_word(name, class->word[i]);
    return n;
}

/* Does the name contain a word that marks another product, and that its class lacks? */
static bool is_variant(const words *class, const words *name) {
    static const char *const variants[] = {"ti", "super", "laptop", "mobile", "max", "d", "nvl"};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (has_word(name, variants[i]) && !has_word(class, variants[i])) return true;
    return false;
}

static double distance(double a, double b) {
    return a > 0 && b > 0 ? fabs(log(a / b)) : 0;
}

const hp_gpu_model *hp_gpu_model_find(const char *name, int64_t memory_bytes, bool *sure) {
    const words named = words_of(name);
    const hp_gpu_model *best = NULL;
    int most = 0;
    double nearest = 0;
    *sure = false;
    if (has_word(&named, "mig")) return NULL;
    for (int i = 0; i < N_MODELS; i++) {
        const words class = words_of(models[i].device.name);
        const int common = common_words(&class, &named);
        const bool whole = common == class.n;
        const double far = distance((double)memory_bytes, (double)models[i].device.memory_bytes);
        const bool better = whole != *sure ? whole : common != most ? common > most : !whole && far < nearest;
        if (!common || !better || is_variant(&class, &named)) continue;
        best = &models[i];
        most = common;
        nearest = far;
        *sure = whole;
    }
    return best;
}

const hp_gpu_model *hp_gpu_model_nearest(const hp_device_class *d) {
    const hp_gpu_model *best = NULL;
    double nearest = INFINITY;
    for (int i = 0; i < N_MODELS; i++) {
        const hp_device_class *m = &models[i].device;
        const double far = distance(d->flops_per_s, m->flops_per_s) +
                           distance(d->bytes_per_s, m->bytes_per_s) +
                           distance((double)d->memory_bytes, (double)m->memory_bytes);
        if (far >= nearest) continue;
        nearest = far;
        best = &models[i];
    }
    return best;
}

/* Drops the last word if it is cut off, because it may name another GPU. Keeps a single word. */
static size_t drop_last_word(const char *slug, size_t k) {
    size_t end = k;
    while (end && slug[end - 1] != '-') end--;
    return end ? end : k;
}

void hp_device_class_slug(const char *name, char *out, size_t n) {
    size_t k = 0;
    const char *c = name;
    for (; *c && k + 1 < n; c++) {
        const bool plain = isalnum((unsigned char)*c);
        if (plain) out[k++] = (char)tolower((unsigned char)*c);
        if (!plain && k && out[k - 1] != '-') out[k++] = '-';
    }
    if (isalnum((unsigned char)*c)) k = drop_last_word(out, k);
    while (k && out[k - 1] == '-') k--;
    snprintf(out + k, n - k, "%s", k ? "" : "gpu");
}

/* --- rates --- */

static void assume(double *rate, double other, double factor) {
    if (*rate <= 0) *rate = other * factor;
}

void hp_device_class_assume(hp_device_class *d, const hp_gpu_model *model) {
    const hp_device_class *m = &model->device;
    const double factor = d->flops_per_s > 0 ? d->flops_per_s / m->flops_per_s : 1;
    snprintf(d->like, sizeof d->like, "%s", m->name); /* its rows may be known; otherwise those of the class
                                                       * it is like */
    if (d->memory_bytes <= 0) d->memory_bytes = m->memory_bytes;
    assume(&d->tf32_flops_per_s, m->tf32_flops_per_s, factor);
    assume(&d->bf16_flops_per_s, m->bf16_flops_per_s, factor);
    assume(&d->fp16_flops_per_s, m->fp16_flops_per_s, factor);
    assume(&d->int8_ops_per_s, m->int8_ops_per_s, factor);
    assume(&d->flops_per_s, m->flops_per_s, 1);
    assume(&d->bytes_per_s, m->bytes_per_s, 1);
    assume(&d->launch_s, m->launch_s, 1);
}

/* The least of all classes; 0 if no class has that rate. */
static double least(size_t offset) {
    double rate = INFINITY;
    for (int i = 0; i < N_MODELS; i++) {
        const double other = *(const double *)(const void *)((const char *)&models[i].device + offset);
        rate = fmin(rate, other);
    }
    return rate;
}

bool hp_device_class_suppose(hp_device_class *d) {
    const bool given = d->flops_per_s > 0 && d->bytes_per_s > 0;
    const double matrices = d->flops_per_s > 0 ? 0 : least(offsetof(hp_device_class, flops_per_s));
    double *const rates[] = {&d->flops_per_s, &d->tf32_flops_per_s, &d->bf16_flops_per_s,
                             &d->fp16_flops_per_s, &d->int8_ops_per_s};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) assume(rates[i], matrices, 1);
    assume(&d->bytes_per_s, least(offsetof(hp_device_class, bytes_per_s)), 1);
    d->guessed = !given;
    return given;
}

static double matrix_rate(const hp_device_class *d, hp_prec prec) {
    const double rates[HP_PRECS] = {
        [HP_PREC_FP32] = d->flops_per_s,      [HP_PREC_TF32] = d->tf32_flops_per_s,
        [HP_PREC_BF16] = d->bf16_flops_per_s, [HP_PREC_FP16] = d->fp16_flops_per_s,
        [HP_PREC_INT8] = d->int8_ops_per_s,   [HP_PREC_INT8_DYNAMIC] = d->int8_ops_per_s};
    return rates[prec];
}

double hp_device_class_peak(const hp_device_class *d, hp_prec prec) {
    const double rate = matrix_rate(d, prec);
    return rate > 0 ? rate : d->flops_per_s;
}

bool hp_device_class_has(const hp_device_class *d, hp_prec prec) {
    return d->is_cpu || matrix_rate(d, prec) > 0;
}

/* --- links --- */

bool hp_link_is_nvlink(const hp_link_class *l) {
    return strncmp(l->name, "nv", 2) == 0;
}

const hp_link_class *hp_link_class_find(const char *name) {
    static const hp_link_class links[] = {LINK_SHM,        LINK_TCP,    LINK_PCIE,     LINK_PCIE4,
                                          LINK_PCIE5,      LINK_NVLINK, LINK_NVSWITCH, LINK_NVSWITCH_H,
                                          LINK_NVSWITCH_B, LINK_EDR,    LINK_HDR,      LINK_NDR};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (strcmp(links[i].name, name) == 0) return &links[i];
    return NULL;
}
