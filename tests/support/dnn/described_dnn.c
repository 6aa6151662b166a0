/* described_dnn.c - cuDNN without a GPU. */
#include "tests/support/dnn/described_dnn.h"

hp_dnn *described_dnn(bool compile) {
    char text[8192];
    hp_dnn *dnn = NULL;
    hp_error err = {HP_OK, ""};
    FILE *f = fopen(HPLAN_TEST_DATA "/h100.json", "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    if (hp_dnn_open_like(text, compile, &dnn, &err) != HP_OK) fail_msg("%s", err.text);
    return dnn;
}

hp_dnn_conv square_conv(hp_dnn_kind kind, hp_dtype dtype, int64_t n, int32_t side, int32_t channels) {
    return (hp_dnn_conv){.kind = (int32_t)kind,
                         .dtype = (int32_t)dtype,
                         .n = n,
                         .ih = side,
                         .iw = side,
                         .ic = channels,
                         .oh = side,
                         .ow = side,
                         .oc = channels,
                         .kh = 3,
                         .kw = 3,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dil_h = 1,
                         .dil_w = 1,
                         .groups = 1,
                         .pad.top = 1,
                         .pad.left = 1,
                         .pad.bottom = 1,
                         .pad.right = 1};
}
