/* test_device_class.c - names of GPUs lead to their class, as nvidia-smi prints them and as people abbreviate
 * them; the data sheets' rates are consistent. */
#include "machines/device_class.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const hp_gpu_model *find(const char *name, bool sure) {
    bool is_sure;
    const hp_gpu_model *g = hp_gpu_model_find(name, 0, &is_sure);
    if (!g) fail_msg("'%s' leads nowhere", name);
    if (is_sure != sure) fail_msg("'%s': sure %d", name, is_sure);
    return g;
}

/* Names from nvidia-smi's lists. */
static void names_of_the_driver_find_their_class(void **state) {
    (void)state;
    static const struct {
        const char *name, *class;
    } rows[] = {{"NVIDIA A100-SXM4-40GB", "a100-40"},
                {"A100-SXM4-40GB", "a100-40"},
                {"NVIDIA A100-PCIE-40GB", "a100-40"},
                {"A100-SXM-80GB", "a100-80"},
                {"NVIDIA A100-SXM4-80GB", "a100-80"},
                {"NVIDIA A100 80GB PCIe", "a100-80-pcie"},
                {"NVIDIA H100 80GB HBM3", "h100"},
                {"NVIDIA H100 PCIe", "h100-pcie"},
                {"NVIDIA H100 NVL", "h100-nvl"},
                {"NVIDIA H200", "h200"},
                {"NVIDIA L40S", "l40s"},
                {"NVIDIA L4", "l4"},
                {"NVIDIA B200", "b200"},
                {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
                {"NVIDIA GeForce RTX 3090", "rtx-3090"},
                {"NVIDIA GeForce RTX 4090", "rtx-4090"},
                {"NVIDIA GeForce RTX 5090", "rtx-5090"},
                {"Tesla V100-SXM2-16GB", "v100-16"},
                {"Tesla V100-SXM2-32GB", "v100-32"},
                {"Tesla V100-PCIE-16GB", "v100-16-pcie"},
                {"Tesla V100-PCIE-32GB", "v100-32-pcie"},
                {"NVIDIA A10", "a10"},
                {"NVIDIA A30", "a30"},
                {"NVIDIA A40", "a40"},
                {"Tesla T4", "t4"},
                {"Tesla P40", "p40"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char other[64] = "";
        assert_string_equal(find(rows[i].name, true)->device.name, rows[i].class);
        for (size_t k = 0; rows[i].name[k]; k++) other[k] = (char)toupper((unsigned char)rows[i].name[k]);
        assert_string_equal(find(other, true)->device.name, rows[i].class);
        for (size_t k = 0; rows[i].name[k]; k++) other[k] = (char)tolower((unsigned char)rows[i].name[k]);
        assert_string_equal(find(other, true)->device.name, rows[i].class);
    }
}

static void every_class_finds_itself(void **state) {
    (void)state;
    for (int i = 0; hp_gpu_model_at(i); i++)
        assert_ptr_equal(find(hp_gpu_model_at(i)->device.name, true), hp_gpu_model_at(i));
}

/* If words are missing, the memory decides. */
static void an_ambiguous_name_is_decided_by_memory(void **state) {
    (void)state;
    bool sure;
    assert_int_equal(find("A100", false)->device.memory_bytes, INT64_C(40000000000));
    assert_int_equal(hp_gpu_model_find("NVIDIA A100", INT64_C(85000000000), &sure)->device.memory_bytes,
                     INT64_C(80000000000));
    assert_string_equal(hp_gpu_model_find("V100-PCIE", INT64_C(34000000000), &sure)->device.name,
                        "v100-32-pcie");
    assert_string_equal(find("V100-PCIE", false)->device.name, "v100-16-pcie");
}

/* Products whose names contain another's are not confused with it; nor a part of a GPU with the whole. */
static void other_names_are_unknown(void **state) {
    (void)state;
    static const char *const names[] = {"",
                                        "NVIDIA A10G",
                                        "NVIDIA A100X",
                                        "NVIDIA GH200 480GB",
                                        "40GB",
                                        "NVIDIA",
                                        "Quadro T400",
                                        "Quadro RTX 6000",
                                        "NVIDIA RTX A6000",
                                        "NVIDIA RTX 6000 Ada Generation",
                                        "NVIDIA GeForce RTX 3080",
                                        "PCIe",
                                        "NVIDIA A1000",
                                        "NVIDIA H200 NVL",
                                        "NVIDIA A100-SXM4-40GB Ti",
                                        "NVIDIA L4 Laptop GPU",
                                        "cpu",
                                        "NVIDIA A100-SXM4-40GB MIG 1g.5gb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool sure;
        const hp_gpu_model *g = hp_gpu_model_find(names[i], 0, &sure);
        if (g) fail_msg("'%s' is taken for %s", names[i], g->device.name);
        assert_false(sure);
    }
}

/* On NVIDIA's tensor cores, bf16 is as fast as fp16, tf32 half as fast, int8 twice as fast; the sheets round.
 * A GeForce accumulates 16-bit products in float32 at half of the possible rate, which makes int8 four times
 * as fast. */
static void rates_of_a_data_sheet_agree(void **state) {
    (void)state;
    for (int i = 0; hp_gpu_model_at(i); i++) {
        const hp_device_class *d = &hp_gpu_model_at(i)->device;
        assert_true(d->memory_bytes > 0 && d->flops_per_s > 0 && d->bytes_per_s > 0 && !d->is_cpu);
        if (!hp_device_class_has(d, HP_PREC_BF16)) continue;
        const double half = d->fp16_flops_per_s;
        assert_true(d->bf16_flops_per_s == half); // NOLINT: the same units
        assert_true(d->tf32_flops_per_s > 0.49 * half && d->tf32_flops_per_s < 0.51 * half);
        const char *const number = strrchr(d->name, '-');
        const bool geforce = strncmp(d->name, "rtx-", 4) == 0 && number == d->name + 3;
        const double int8 = d->int8_ops_per_s / (geforce ? 2 : 1);
        assert_true(int8 > 1.98 * half && int8 < 2.03 * half);
    }
}

/* Volta, Turing and Pascal have no units for bf16 and tf32, Pascal none for fp16; a CPU computes in all of
 * them. */
static void older_gpus_lack_precisions(void **state) {
    (void)state;
    static const char *const old[] = {"v100-16", "v100-32", "v100-16-pcie", "v100-32-pcie", "t4", "p40"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        const hp_device_class *d = &find(old[i], true)->device;
        assert_false(hp_device_class_has(d, HP_PREC_BF16) || hp_device_class_has(d, HP_PREC_TF32));
        assert_int_equal(hp_device_class_has(d, HP_PREC_FP16), strcmp(old[i], "p40") != 0);
        assert_true(hp_device_class_peak(d, HP_PREC_BF16) ==
                    d->flops_per_s); // NOLINT: no faster than float32
    }
    assert_true(hp_device_class_has(&find("a100-40", true)->device, HP_PREC_TF32));
    assert_true(hp_device_class_has(&(hp_device_class){.is_cpu = true}, HP_PREC_INT8));
}

/* A device is nearest to itself; if nothing is known, something is assumed nevertheless. */
static void the_nearest_device_is_the_same_one(void **state) {
    (void)state;
    for (int i = 0; hp_gpu_model_at(i); i++) {
        const hp_device_class *d = &hp_gpu_model_at(i)->device;
        assert_true(hp_gpu_model_nearest(d)->device.bytes_per_s == d->bytes_per_s); // NOLINT: the same
    }
    assert_non_null(hp_gpu_model_nearest(&(hp_device_class){.is_cpu = false}));
}

/* Data sheets: each accelerator draws more than a slot provides and at most 1000 W; the module of a chip
 * draws more than the card. */
static void every_class_has_its_power(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"a100-80", "a100-80-pcie"}, {"h100", "h100-pcie"}, {"v100-16", "v100-16-pcie"}};
    for (int i = 0; hp_gpu_model_at(i); i++) {
        const double tdp_w = hp_device_class_tdp(&hp_gpu_model_at(i)->device);
        assert_true(tdp_w >= 70 && tdp_w <= 1000);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_true(hp_device_class_tdp(&find(pairs[i][0], true)->device) >
                    hp_device_class_tdp(&find(pairs[i][1], true)->device));
    assert_true(hp_device_class_tdp(&(hp_device_class){.name = "cpu"}) <= 0); /* not known */
}

/* Wherever a name is truncated, it does not become another GPU's. */
static void a_short_form_has_whole_words(void **state) {
    (void)state;
    static const char name[] = "Some (very) Long T4x of L40Suffix-A100b";
    static const char *const words[] = {"some", "very", "long", "t4x", "of", "l40suffix", "a100b"};
    char slug[64], wanted[64] = "";
    for (size_t n = sizeof "some"; n <= sizeof slug; n++) {
        hp_device_class_slug(name, slug, n);
        for (size_t i = 0, used = 0; i < sizeof words / sizeof *words; i++) {
            const size_t more = (used ? 1 : 0) + strlen(words[i]);
            if (used + more + 1 > n) break;
            snprintf(wanted + used, sizeof wanted - used, "%s%s", used ? "-" : "", words[i]);
            used += more;
        }
        assert_string_equal(slug, wanted);
    }
    hp_device_class_slug("Allinonewordwithoutanyspace", slug, 8);
    assert_string_equal(slug, "allinon");
}

/* A device without a class is like the one whose figures it was given, which may have rows, not like the
 * class that stands in for that one. */
static void an_unknown_device_is_like_its_nearest(void **state) {
    (void)state;
    for (int i = 0; hp_gpu_model_at(i); i++) {
        hp_device_class d = {.name = "mine"};
        hp_device_class_assume(&d, hp_gpu_model_at(i));
        assert_string_equal(d.like, hp_gpu_model_at(i)->device.name);
    }
    assert_string_equal(hp_device_class_like("h100-nvl"), "h100");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_driver_find_their_class),
        cmocka_unit_test(every_class_finds_itself),
        cmocka_unit_test(an_ambiguous_name_is_decided_by_memory),
        cmocka_unit_test(other_names_are_unknown),
        cmocka_unit_test(rates_of_a_data_sheet_agree),
        cmocka_unit_test(older_gpus_lack_precisions),
        cmocka_unit_test(the_nearest_device_is_the_same_one),
        cmocka_unit_test(every_class_has_its_power),
        cmocka_unit_test(a_short_form_has_whole_words),
        cmocka_unit_test(an_unknown_device_is_like_its_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
