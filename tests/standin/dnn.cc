/* dnn.cc - exec/cuda/dnn/dnn.h by plain loops. Plans fuse the epilogue unless the seed is odd.
 * HPLAN_STANDIN_ENGINES=N: every operation has N engines, whose results differ in the last place, and each
 * rank's timing prefers another one; N@R: all prefer rank R's. */
#include "networks/graph/acts.h"
#include "tests/standin/cudnn.h"
#include "tests/standin/numbers.h"

#include <map>
#include <set>
#include <stdlib.h>
#include <string>

struct hp_dnn {
    hp_cuda *cuda;
    bool fuses;
    std::vector<hp_dnn_plan *> plans;
    std::map<std::string, int> engine; /* by operation */
    std::set<std::string> told;
};

struct hp_dnn_plan {
    hp_dnn *dnn;
    hp_dnn_conv c;
    int64_t workspace;
    bool fused;
    std::string key;
};

/* --- the operation --- */

static int64_t inputs(const hp_dnn_conv &c) {
    return c.n * c.ih * c.iw * c.ic;
}

static int64_t outputs(const hp_dnn_conv &c) {
    return c.n * c.oh * c.ow * c.oc;
}

static int64_t weights(const hp_dnn_conv &c) {
    return (int64_t)c.oc * c.kh * c.kw * (c.ic / c.groups);
}

/* Calls f(x, w, y), offsets of first elements, for all products of one tap; channels are contiguous. */
template <typename F>
static void for_tap(const hp_dnn_conv &c, int64_t pixel, int64_t out, int r, int s, F f) {
    const int each = c.ic / c.groups, outs = c.oc / c.groups;
    for (int k = 0; k < c.oc; k++)
        f(pixel * c.ic + k / outs * each, (((int64_t)k * c.kh + r) * c.kw + s) * each, out * c.oc + k);
}

template <typename F> static void for_pixel(const hp_dnn_conv &c, int64_t n, int oy, int ox, F f) {
    const int64_t out = (n * c.oh + oy) * c.ow + ox;
    for (int r = 0; r < c.kh; r++)
        for (int s = 0; s < c.kw; s++) {
            const int iy = oy * c.stride_h - c.pad.top + r * c.dil_h;
            const int ix = ox * c.stride_w - c.pad.left + s * c.dil_w;
            if (iy >= 0 && iy < c.ih && ix >= 0 && ix < c.iw)
                for_tap(c, (n * c.ih + iy) * c.iw + ix, out, r, s, f);
        }
}

template <typename F> static void for_all(const hp_dnn_conv &c, F f) {
    for (int64_t n = 0; n < c.n; n++)
        for (int oy = 0; oy < c.oh; oy++)
            for (int ox = 0; ox < c.ow; ox++) for_pixel(c, n, oy, ox, f);
}

using factors = const std::vector<float> &;
using sums = std::vector<double> &;

static void forward(const hp_dnn_conv &c, factors x, factors w, sums y) {
    const int each = c.ic / c.groups;
    for_all(c, [&](int64_t xi, int64_t wi, int64_t yi) {
        for (int i = 0; i < each; i++) y[(size_t)yi] += (double)x[(size_t)(xi + i)] * w[(size_t)(wi + i)];
    });
}

static void dgrad(const hp_dnn_conv &c, factors dy, factors w, sums dx) {
    const int each = c.ic / c.groups;
    for_all(c, [&](int64_t xi, int64_t wi, int64_t yi) {
        for (int i = 0; i < each; i++) dx[(size_t)(xi + i)] += (double)dy[(size_t)yi] * w[(size_t)(wi + i)];
    });
}

static void wgrad(const hp_dnn_conv &c, factors x, factors dy, sums dw) {
    const int each = c.ic / c.groups;
    for_all(c, [&](int64_t xi, int64_t wi, int64_t yi) {
        for (int i = 0; i < each; i++) dw[(size_t)(wi + i)] += (double)x[(size_t)(xi + i)] * dy[(size_t)yi];
    });
}

/* What each kind reads and writes, as members of hp_dnn_data. */
static const struct {
    void *hp_dnn_data::*a, *hp_dnn_data::*b, *hp_dnn_data::*to;
    int64_t (*n_a)(const hp_dnn_conv &), (*n_b)(const hp_dnn_conv &), (*n_to)(const hp_dnn_conv &);
    void (*run)(const hp_dnn_conv &, factors, factors, sums);
} KINDS[] = {
    {&hp_dnn_data::x, &hp_dnn_data::w, &hp_dnn_data::y, inputs, weights, outputs, forward},
    {&hp_dnn_data::y, &hp_dnn_data::w, &hp_dnn_data::x, outputs, weights, inputs, dgrad},
    {&hp_dnn_data::x, &hp_dnn_data::y, &hp_dnn_data::w, inputs, outputs, weights, wgrad},
};

static float activated(float v, int32_t act) {
    if (act == HP_ACT_RELU6) return std::min(std::max(v, 0.0f), 6.0f);
    return act == HP_ACT_RELU ? std::max(v, 0.0f) : v;
}

/* y = act(sum + bias + z); for gradients z is the earlier contents. */
static void finish(const hp_dnn_plan &p, const hp_dnn_data &at, void *to, const std::vector<double> &sum) {
    const hp_dnn_conv &c = p.c;
    const bool ahead = c.kind == HP_DNN_FORWARD;
    const void *added = ahead ? at.z : to;
    const bool more = !ahead || p.fused;
    for (size_t i = 0; i < sum.size(); i++) {
        double v = sum[i];
        if (c.bias && more) v += ((const float *)at.bias)[i % (size_t)c.oc];
        if (c.add && more) v += standin_number(added, (int64_t)i, c.dtype);
        v *= 1 + (double)(hp_dnn_plan_engine(&p) - 1) * 0x1p-23;
        standin_set_number(to, (int64_t)i, c.dtype, more ? activated((float)v, c.act) : (float)v);
    }
}

static void compute(const hp_dnn_plan &p, const hp_dnn_data &at) {
    const auto &k = KINDS[p.c.kind];
    const bool tf32 = p.c.dtype == HP_F32 && p.c.math == HP_DNN_TF32;
    std::vector<double> sum((size_t)k.n_to(p.c));
    if (p.workspace) memset(at.workspace, 0xff, (size_t)p.workspace);
    k.run(p.c, standin_numbers(at.*k.a, k.n_a(p.c), p.c.dtype, tf32),
          standin_numbers(at.*k.b, k.n_b(p.c), p.c.dtype, tf32), sum);
    finish(p, at, at.*k.to, sum);
}

/* --- the interface --- */

extern "C" {

hp_status hp_dnn_open(hp_cuda *cuda, hp_dnn **dnn, hp_error *err) {
    (void)err;
    const char *seed = getenv("HPLAN_STANDIN_SEED");
    *dnn = new hp_dnn{cuda, !seed || atol(seed) % 2 == 0, {}, {}, {}};
    return HP_OK;
}

void hp_dnn_close(hp_dnn *dnn) {
    if (!dnn) return;
    for (hp_dnn_plan *p : dnn->plans) delete p;
    delete dnn;
}

/* Checks sizes along one axis: windows follow from the padding; negative padding means unread inputs. */
static bool agree(int in, int out, int kernel, int dilation, int stride, int before, int after) {
    return in > 0 && out > 0 && (out - 1) * stride + (kernel - 1) * dilation + 1 == in + before + after;
}

static bool consistent(const hp_dnn_conv *c) {
    const bool sizes = agree(c->ih, c->oh, c->kh, c->dil_h, c->stride_h, c->pad.top, c->pad.bottom) &&
                       agree(c->iw, c->ow, c->kw, c->dil_w, c->stride_w, c->pad.left, c->pad.right);
    const bool types = c->dtype == HP_F32 || c->dtype == HP_BF16 || c->dtype == HP_F16;
    const bool plain = !c->bias && c->act == HP_ACT_NONE;
    return sizes && types && c->ic % c->groups == 0 && c->oc % c->groups == 0 && c->act <= HP_ACT_RELU6 &&
           (plain || c->kind == HP_DNN_FORWARD);
}

static std::string key_of(const hp_dnn_conv &c) {
    std::string key;
    for (const int64_t v : {(int64_t)c.kind, (int64_t)c.dtype, (int64_t)c.math, c.n, (int64_t)c.ih,
                            (int64_t)c.iw, (int64_t)c.ic, (int64_t)c.oc, (int64_t)c.kh, (int64_t)c.kw,
                            (int64_t)c.stride_h, (int64_t)c.pad.top})
        key += std::to_string(v) + ",";
    return key;
}

/* As if ranks had timed it: no two agree. */
static int preferred(size_t number) {
    const char *engines = getenv("HPLAN_STANDIN_ENGINES"), *of = engines ? strchr(engines, '@') : nullptr;
    const int n = engines ? atoi(engines) : 1, rank = of ? atoi(of + 1) : standin_rank();
    return 1 + (int)((number + (size_t)rank) % (size_t)std::max(n, 1));
}

hp_status hp_dnn_plan_conv(hp_dnn *dnn, const hp_dnn_conv *c, int64_t workspace, hp_dnn_plan **plan,
                           hp_error *err) {
    if (!consistent(c)) return hp_fail(err, HP_EUNAVAIL, "sizes, strides and padding do not belong together");
    const bool follows = c->kind == HP_DNN_FORWARD && (c->bias || c->add || c->act != HP_ACT_NONE);
    *plan = new hp_dnn_plan{dnn, *c, std::min(workspace, (int64_t)STANDIN_WORKSPACE), !follows || dnn->fuses,
                            key_of(*c)};
    if (getenv("HPLAN_STANDIN_ENGINES")) dnn->engine.emplace((*plan)->key, preferred(dnn->engine.size()));
    dnn->plans.push_back(*plan);
    return HP_OK;
}

bool hp_dnn_plan_fused(const hp_dnn_plan *p) {
    return p->fused;
}

int64_t hp_dnn_plan_workspace(const hp_dnn_plan *p) {
    return p->workspace;
}

int64_t hp_dnn_plan_engine(const hp_dnn_plan *p) {
    const auto at = p->dnn->engine.find(p->key);
    return at == p->dnn->engine.end() ? 1 : at->second;
}

const char *hp_dnn_plan_name(const hp_dnn_plan *p) {
    (void)p;
    return "stand-in for cudnn";
}

hp_status hp_dnn_run(hp_dnn_plan *p, const hp_dnn_data *data, hp_error *err) {
    const hp_dnn_conv &c = p->c;
    const int64_t bytes = hp_dtype_bytes((hp_dtype)c.dtype), lines = c.alignment ? c.alignment : 16;
    const bool forwards = c.kind == HP_DNN_FORWARD;
    hp_dnn_data at = *data;
    if (!standin_tensor(&at.x, inputs(c), bytes, lines, "x", err) ||
        !standin_tensor(&at.w, weights(c), bytes, 16, "w", err) ||
        !standin_tensor(&at.y, outputs(c), bytes, lines, "y", err) ||
        (p->fused && forwards && c.add && !standin_tensor(&at.z, outputs(c), bytes, lines, "z", err)) ||
        (p->fused && c.bias && !standin_tensor(&at.bias, c.oc, 4, 4, "bias", err)) ||
        (p->workspace && !standin_tensor(&at.workspace, p->workspace, 1, 16, "workspace", err)))
        return HP_EINTERNAL;
    const hp_dnn_plan copy = *p;
    return hp_cuda_checked(standin_give(p->dnn->cuda->compute, [=] { compute(copy, at); }), "hp_dnn_run",
                           err);
}

size_t cudnnGetVersion(void) {
    return 91900;
}

/* --- choices: an engine for every operation, as if it had been timed --- */

char *hp_dnn_choices_export(const hp_dnn *dnn) {
    std::string text;
    for (const auto &[key, engine] : dnn->engine)
        if (!dnn->told.count(key)) text += key + "=" + std::to_string(engine) + ";";
    return text.empty() ? nullptr : strdup(text.c_str());
}

hp_status hp_dnn_choices_import(hp_dnn *dnn, const char *text, hp_error *err) {
    const std::string all = text;
    if (standin_fails("adopt"))
        return hp_fail(err, HP_EUNAVAIL, "an engine of another rank does not run here");
    for (size_t at = 0, end; (end = all.find(';', at)) != std::string::npos; at = end + 1) {
        const size_t is = all.find('=', at);
        if (is == std::string::npos || is > end) return hp_fail(err, HP_EDATA, "no choice");
        const std::string key = all.substr(at, is - at);
        if (!dnn->told.insert(key).second) continue;
        if (dnn->engine.count(key)) dnn->engine[key] = std::stoi(all.substr(is + 1, end - is - 1));
    }
    return HP_OK;
}
}
