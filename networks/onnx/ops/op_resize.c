/* op_resize.c - Pad, Resize and Upsample. hplan supports four of Resize's many conventions, by sizes or by
 * scales. A node is accepted if one of them reads the same pixels with the same weights at this size. */
#include "networks/graph/graph_gather.h"
#include "networks/onnx/onnx_inside.h"

#include "networks/graph/resample.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- sizes --- */

typedef struct resizing {
    int32_t in[2], out[2]; /* rows, columns */
    double scale[2];       /* as given, or out / in */
    bool given;            /* scales were given */
    int corners, nearest;  /* indices of the names below */
    hp_interpolation mode;
    double cubic;
    int64_t inside;
} resizing;

/* The dimensions that scales or sizes refer to: all, or from opset 18 on those in `axes`. */
static hp_status read_axes(const onnx_call *c, const onnx_value *x, int axis[ONNX_MOST_DIMS], int *n) {
    int64_t axes[ONNX_MOST_DIMS];
    bool named[ONNX_MOST_DIMS] = {false};
    HP_TRY(onnx_attr_ints(c, "axes", ONNX_MOST_DIMS, axes, n));
    for (int i = 0; i < *n; i++) {
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis[i]));
        if (named[axis[i]]) return onnx_fail(c, "names dimension %d twice in axes", axis[i]);
        named[axis[i]] = true;
    }
    if (*n > 0) return HP_OK;
    for (int d = 0; d < x->n_dim; d++) axis[d] = d;
    *n = x->n_dim;
    return HP_OK;
}

/* Dimension d of x becomes v pixels, or is multiplied by v; only rows and columns may change. */
static hp_status resize_dimension(const onnx_call *c, const onnx_value *x, int d, double v, resizing *r) {
    const double out = r->given ? floor((double)((float)x->dim[d] * (float)v)) : v;
    if (!(out >= 1 && out <= ONNX_MOST_SIZE)) return onnx_fail(c, "makes a map of %g pixels", out);
    if (d < 2) return (int64_t)out == x->dim[d] ? HP_OK : onnx_fail(c, "resizes samples or channels");
    r->out[d - 2] = (int32_t)out;
    r->scale[d - 2] = r->given ? v : out / (double)x->dim[d];
    return HP_OK;
}

/* Per dimension a scale (float32) or a size. */
static hp_status read_scales_or_sizes(const onnx_call *c, const onnx_value *x, const onnx_const *k,
                                      bool scales, resizing *r) {
    int axis[ONNX_MOST_DIMS], n;
    r->given = scales;
    HP_TRY(read_axes(c, x, axis, &n));
    if (k->n_dim != 1 || k->count != n || !onnx_is_canonical(c->r, x, x->n_dim))
        return onnx_fail(c, "needs %s for each of the %d dimensions of (N, C, H, W)%s",
                         scales ? "a scale" : "a size", n, n < x->n_dim ? " in axes" : "");
    for (int i = 0; i < n; i++) HP_TRY(resize_dimension(c, x, axis[i], onnx_real(k, i), r));
    return HP_OK;
}

static hp_status read_sizes(const onnx_call *c, const onnx_value *x, resizing *r) {
    const bool upsample = strcmp(c->node->op_type, "Upsample") == 0;
    const int scales = upsample || c->r->opset < 11 ? 1 : 2;
    const onnx_const *k;
    const Onnx__AttributeProto *a = onnx_attr(c, "scales");
    if (a && upsample && c->r->opset < 9) {
        const onnx_const old = {
            .type = ONNX_FLOAT, .n_dim = 1, .count = (int64_t)a->n_floats, .data = a->floats};
        return read_scales_or_sizes(c, x, &old, true, r);
    }
    const onnx_value *given = onnx_in(c, scales);
    if (given && !(given->kind == ONNX_CONST && given->c.count == 0)) {
        HP_TRY(onnx_need_const(c, scales, "scales", &k));
        return read_scales_or_sizes(c, x, k, true, r);
    }
    HP_TRY(onnx_need_const(c, 3, "sizes", &k));
    return read_scales_or_sizes(c, x, k, false, r);
}

/* --- the four conventions --- */

/* The names of coordinate_transformation_mode and nearest_mode, indexed by these enums. */
static const char *const corner_names[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                           "tf_half_pixel_for_nn"};
enum { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, TF_HALF_PIXEL, N_CORNERS };
static const char *const nearest_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, N_NEAREST };

static double position(const resizing *r, int side, int64_t i) {
    const double in = r->in[side], out = r->given ? in * r->scale[side] : r->out[side], s = r->scale[side];
    const bool one = r->out[side] == 1;
    if (r->corners == ALIGN_CORNERS) return one ? 0 : (double)i * (in - 1) / (out - 1);
    if (r->corners == ASYMMETRIC) return (double)i / s;
    if (r->corners == PYTORCH_HALF_PIXEL && one) return 0;
    return ((double)i + 0.5) / s - (r->corners == TF_HALF_PIXEL ? 0 : 0.5);
}

static double rounded(const resizing *r, double x) {
    if (r->nearest == FLOOR) return floor(x);
    if (r->nearest == CEIL) return ceil(x);
    return r->nearest == PREFER_CEIL ? floor(x + 0.5) : ceil(x - 0.5);
}

/* Where the layer reads. For cubic, the coordinate itself, whose neighbours may lie beyond the map. */
static double read_at(const hp_resampling *ours, int64_t i) {
    const hp_resample at = hp_resample_at(ours, i);
    const hp_coordinate c = hp_coordinate_at(ours, i);
    return ours->interpolation == HP_CUBIC ? (double)c.below + c.part : (double)at.lo + at.weight;
}

/* Does the layer read the same pixels along this side as the node? */
static bool reads_the_same(const resizing *r, const hp_layer *l, int side) {
    const double last = r->in[side] - 1;
    const hp_resampling ours = hp_resampling_of(l, side == 0, r->in[side], r->out[side]);
    for (int64_t i = 0; i < r->out[side]; i++) {
        double theirs = position(r, side, i);
        if (r->mode == HP_NEAREST) theirs = rounded(r, theirs);
        if (r->mode != HP_CUBIC) theirs = theirs < 0 ? 0 : theirs > last ? last : theirs;
        if (fabs(theirs - read_at(&ours, i)) > 1e-6 * (1 + last)) return false;
    }
    return true;
}

/* Tries the sizes, then the given scales. */
static hp_status choose_corners(const onnx_call *c, const resizing *r, hp_layer *l) {
    const bool nearest = r->mode == HP_NEAREST;
    l->resize.interpolation = r->mode;
    HP_TRY(onnx_spend(c, 16 * ((int64_t)r->out[0] + r->out[1])));
    for (int way = 0; way < (r->given ? 2 : 1); way++) {
        l->resize.scale_h = way ? r->scale[0] : 0;
        l->resize.scale_w = way ? r->scale[1] : 0;
        for (l->resize.corners = 0; l->resize.corners < HP_CORNERS; l->resize.corners++)
            if (reads_the_same(r, l, 0) && reads_the_same(r, l, 1)) return HP_OK;
    }
    return onnx_fail(c,
                     "from %dx%d to %dx%d with coordinates '%s'%s%s is not supported: use half_pixel, "
                     "align_corners or asymmetric, of nearest pixels with nearest_mode round_prefer_floor or "
                     "floor, and sizes",
                     r->in[0], r->in[1], r->out[0], r->out[1], corner_names[r->corners],
                     nearest ? " and nearest_mode " : "", nearest ? nearest_names[r->nearest] : "");
}

/* --- the nodes --- */

/* One of the names; without the attribute, *choice keeps its default. */
static hp_status read_choice(const onnx_call *c, const char *attribute, const char *const *names, int n,
                             int *choice) {
    const char *text = names[*choice];
    HP_TRY(onnx_attr_text(c, attribute, &text));
    for (int i = 0; i < n; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *choice = i;
        return HP_OK;
    }
    return onnx_fail(c, "%s '%s' is not supported", attribute, onnx_clean(c->r->scratch, text));
}

static hp_status read_mode(const onnx_call *c, hp_interpolation *mode) {
    static const struct {
        const char *name;
        hp_interpolation mode;
    } modes[] = {
        {"nearest", HP_NEAREST}, {"linear", HP_BILINEAR}, {"bilinear", HP_BILINEAR}, {"cubic", HP_CUBIC}};
    const char *text = "nearest";
    HP_TRY(onnx_attr_text(c, "mode", &text));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        *mode = modes[i].mode;
        if (strcmp(text, modes[i].name) == 0) return HP_OK;
    }
    return onnx_fail(c, "mode '%s' is not supported: nearest, linear and cubic are",
                     onnx_clean(c->r->scratch, text));
}

static hp_status read_modes(const onnx_call *c, resizing *r) {
    static const char *const policies[] = {"stretch"};
    const bool old = c->r->opset < 11;
    int policy = 0;
    int64_t antialias = 0;
    r->corners = old ? ASYMMETRIC : HALF_PIXEL;
    r->nearest = old ? FLOOR : PREFER_FLOOR;
    r->cubic = -0.75;
    HP_TRY(read_mode(c, &r->mode));
    HP_TRY(onnx_attr_int(c, "antialias", 0, 1, &antialias));
    if (antialias) return onnx_fail(c, "antialias is not supported");
    HP_TRY(onnx_attr_int(c, "exclude_outside", 0, 1, &r->inside));
    HP_TRY(onnx_attr_float(c, "cubic_coeff_a", &r->cubic));
    if (!isfinite(r->cubic)) return onnx_fail(c, "cubic_coeff_a is not a number");
    HP_TRY(read_choice(c, "keep_aspect_ratio_policy", policies, 1, &policy));
    HP_TRY(read_choice(c, "coordinate_transformation_mode", corner_names, N_CORNERS, &r->corners));
    return read_choice(c, "nearest_mode", nearest_names, N_NEAREST, &r->nearest);
}

hp_status onnx_read_resize(onnx_call *c) {
    onnx_value *x;
    resizing r = {.scale = {1, 1}};
    int32_t y;
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(read_modes(c, &r));
    r.in[0] = (int32_t)onnx_extent(c->r, x, HP_AXIS_H);
    r.in[1] = (int32_t)onnx_extent(c->r, x, HP_AXIS_W);
    memcpy(r.out, r.in, sizeof r.out); /* keeps the axes that are not named */
    HP_TRY(read_sizes(c, x, &r));
    hp_layer l = {.op = HP_RESIZE, .n_in = 1, .in = {x->tensor}, .out_h = r.out[0], .out_w = r.out[1]};
    if (r.mode == HP_CUBIC) l.resize.inside = (int32_t)r.inside;
    if (r.mode == HP_CUBIC) l.resize.cubic = r.cubic;
    HP_TRY(choose_corners(c, &r, &l));
    HP_TRY(onnx_emit(c, l, 0, &y));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}

/* --- Pad --- */

/* pads: all beginnings, then all ends, of the dimensions in `axes` (all dimensions if absent). */
static hp_status read_pads(const onnx_call *c, const onnx_value *x, int64_t before[2], int64_t after[2]) {
    int64_t pads[2 * ONNX_MOST_DIMS], axes[ONNX_MOST_DIMS];
    int n, n_axes;
    HP_TRY(onnx_ints(c, "pads", 1, 2 * ONNX_MOST_DIMS, pads, &n));
    HP_TRY(onnx_ints(c, "axes", 3, ONNX_MOST_DIMS, axes, &n_axes));
    for (int i = 0; i < x->n_dim && n_axes == 0; i++) axes[i] = i;
    n_axes = n_axes ? n_axes : x->n_dim;
    if (n != 2 * n_axes) return onnx_fail(c, "has %d pads for %d dimensions", n, n_axes);
    for (int i = 0; i < n_axes; i++) {
        int axis;
        HP_TRY(onnx_axis(c, axes[i], x->n_dim, &axis));
        if (pads[i] < 0 || pads[i + n_axes] < 0 || pads[i] > ONNX_MOST_SIZE ||
            pads[i + n_axes] > ONNX_MOST_SIZE)
            return onnx_fail(c, "that crops is not supported");
        if (axis < 2 && (pads[i] || pads[i + n_axes]))
            return onnx_fail(c, "of samples or channels is not supported: only of rows and columns");
        if (axis < 2) continue;
        before[axis - 2] = pads[i];
        after[axis - 2] = pads[i + n_axes];
    }
    return HP_OK;
}

static bool pads_nothing(const onnx_call *c) {
    int64_t pads[2 * ONNX_MOST_DIMS];
    int n;
    bool nothing = onnx_ints(c, "pads", 1, 2 * ONNX_MOST_DIMS, pads, &n) == HP_OK && n > 0;
    for (int i = 0; i < n && nothing; i++) nothing = pads[i] == 0;
    return nothing;
}

static hp_status emit_shift(const onnx_call *c, int32_t *tensor, double by) {
    const int64_t channels = c->r->graph->tensor[*tensor].c;
    float *one = HP_NEW(c->r->arena, float, channels), *bias = HP_NEW(c->r->arena, float, channels);
    for (int64_t i = 0; i < channels; i++) {
        one[i] = 1;
        bias[i] = (float)by;
    }
    return onnx_emit_scale(c, *tensor, one, bias, tensor);
}

static hp_status continue_edges(onnx_call *c, const onnx_value *x, const char *mode) {
    const bool edge = strcmp(mode, "edge") == 0;
    int64_t before[2] = {0, 0}, after[2] = {0, 0};
    if (!edge && strcmp(mode, "reflect") != 0)
        return onnx_fail(c, "mode '%s' is not supported: constant, edge and reflect are",
                         onnx_clean(c->r->scratch, mode));
    HP_TRY(read_pads(c, x, before, after));
    const int64_t size[2] = {onnx_extent(c->r, x, HP_AXIS_H), onnx_extent(c->r, x, HP_AXIS_W)};
    for (int i = 0; i < 2; i++) {
        if (!edge && (before[i] >= size[i] || after[i] >= size[i]))
            return onnx_fail(c, "reflects more pixels than there are, %" PRId64, size[i]);
        if (size[i] + before[i] + after[i] > ONNX_MOST_SIZE)
            return onnx_fail(c, "makes a map that is too large");
    }
    int32_t y = x->tensor;
    HP_TRY(onnx_emit_gather(c,
                            (hp_layer){.gather.border = edge ? HP_BORDER_EDGE : HP_BORDER_REFLECT,
                                       .gather.step = 1,
                                       .window.pad_h = (int32_t)before[0],
                                       .window.pad_w = (int32_t)before[1],
                                       .out_h = (int32_t)(size[0] + before[0] + after[0]),
                                       .out_w = (int32_t)(size[1] + before[1] + after[1])},
                            &y));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}

/* A border of value v: v is subtracted before zero-padding and added afterwards. */
hp_status onnx_read_pad(onnx_call *c) {
    onnx_value *x;
    int64_t before[2] = {0, 0}, after[2] = {0, 0};
    double border = 0;
    const char *mode = "constant";
    if (pads_nothing(c)) return onnx_read_identity(c);
    HP_TRY(onnx_need_map(c, 0, &x));
    HP_TRY(onnx_attr_text(c, "mode", &mode));
    if (strcmp(mode, "constant") != 0) return continue_edges(c, x, mode);
    HP_TRY(onnx_attr_float(c, "value", &border));
    HP_TRY(onnx_need_number(c, 2, "value", &border));
    HP_TRY(read_pads(c, x, before, after));
    const int64_t h = onnx_extent(c->r, x, HP_AXIS_H) + before[0] + after[0],
                  w = onnx_extent(c->r, x, HP_AXIS_W) + before[1] + after[1];
    if (h > ONNX_MOST_SIZE || w > ONNX_MOST_SIZE) return onnx_fail(c, "makes a map that is too large");
    int32_t y = x->tensor;
    if (border != 0) HP_TRY(emit_shift(c, &y, -border));
    hp_layer l = {.op = HP_PAD,
                  .n_in = 1,
                  .in = {y},
                  .window.pad_h = (int32_t)before[0],
                  .window.pad_w = (int32_t)before[1],
                  .out_h = (int32_t)h,
                  .out_w = (int32_t)w};
    HP_TRY(onnx_emit(c, l, 0, &y));
    if (border != 0) HP_TRY(emit_shift(c, &y, border));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}
