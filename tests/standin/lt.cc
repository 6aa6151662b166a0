/* lt.cc - exec/cuda/dnn/lt.h by plain loops. */
#include "tests/standin/numbers.h"

extern "C" {
#include "exec/cuda/dnn/lt.h"
}

struct hp_lt {
    hp_cuda *cuda;
    std::vector<hp_lt_plan *> plans;
};

struct hp_lt_plan {
    hp_lt *lt;
    hp_lt_product p;
    int64_t workspace;
};

namespace {
struct matrix { /* element (i, j) */
    const float *at;
    int64_t down, across;
    double operator()(int64_t i, int64_t j) const {
        return at[i * down + j * across];
    }
};
} // namespace

/* to (rows, columns) = a (rows, inner) b (inner, columns) */
static void multiply(const hp_lt_product &p, const matrix &a, const matrix &b, int64_t rows, int64_t inner,
                     int64_t columns, const float *bias, void *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = p.add ? standin_number(to, i * columns + j, p.result) : 0;
            for (int64_t l = 0; l < inner; l++) sum += a(i, l) * b(l, j);
            if (p.bias) sum += bias[j];
            standin_set_number(to, i * columns + j, p.result, (float)sum);
        }
}

static void compute(const hp_lt_plan &plan, const hp_dnn_data &at) {
    const hp_lt_product &p = plan.p;
    const bool tf32 = p.dtype == HP_F32 && p.math == HP_DNN_TF32, forward = p.kind == HP_LT_FORWARD;
    const void *second = p.kind == HP_LT_WGRAD ? at.x : at.w, *first = forward ? at.x : at.y;
    const std::vector<float> f = standin_numbers(first, forward ? p.m * p.k : p.m * p.n, p.dtype, tf32);
    const std::vector<float> s =
        standin_numbers(second, p.kind == HP_LT_WGRAD ? p.m * p.k : p.n * p.k, p.dtype, tf32);
    const float *bias = (const float *)at.bias;
    if (plan.workspace) memset(at.workspace, 0xff, (size_t)plan.workspace);
    const matrix weights = p.inputs_first ? matrix{s.data(), p.n, 1} : matrix{s.data(), 1, p.k};
    if (forward) multiply(p, {f.data(), p.k, 1}, weights, p.m, p.k, p.n, bias, at.y);
    if (p.kind == HP_LT_DGRAD) multiply(p, {f.data(), p.n, 1}, {s.data(), p.k, 1}, p.m, p.n, p.k, bias, at.x);
    if (p.kind == HP_LT_WGRAD) multiply(p, {f.data(), 1, p.n}, {s.data(), p.k, 1}, p.n, p.m, p.k, bias, at.w);
}

extern "C" {

hp_status hp_lt_open(hp_cuda *cuda, hp_lt **lt, hp_error *err) {
    (void)err;
    *lt = new hp_lt{cuda, {}};
    return HP_OK;
}

void hp_lt_close(hp_lt *lt) {
    if (!lt) return;
    for (hp_lt_plan *p : lt->plans) delete p;
    delete lt;
}

hp_status hp_lt_plan_product(hp_lt *lt, const hp_lt_product *p, int64_t workspace, hp_lt_plan **plan,
                             hp_error *err) {
    if (p->bias && (p->kind != HP_LT_FORWARD || p->result != HP_F32))
        return hp_fail(err, HP_EUNAVAIL, "a bias of another product than forward to float32");
    *plan = new hp_lt_plan{lt, *p, std::min(workspace, (int64_t)STANDIN_WORKSPACE)};
    lt->plans.push_back(*plan);
    return HP_OK;
}

hp_status hp_lt_run(hp_lt_plan *p, const hp_dnn_data *data, hp_error *err) {
    const hp_lt_product &q = p->p;
    const int64_t factor = hp_dtype_bytes((hp_dtype)q.dtype), result = hp_dtype_bytes((hp_dtype)q.result);
    hp_dnn_data at = *data;
    if (!standin_tensor(&at.x, q.m * q.k, q.kind == HP_LT_DGRAD ? result : factor, 16, "x", err) ||
        !standin_tensor(&at.w, q.n * q.k, q.kind == HP_LT_WGRAD ? result : factor, 16, "w", err) ||
        !standin_tensor(&at.y, q.m * q.n, q.kind == HP_LT_FORWARD ? result : factor, 16, "y", err) ||
        (q.bias && !standin_tensor(&at.bias, q.n, 4, 4, "bias", err)) ||
        (p->workspace && !standin_tensor(&at.workspace, p->workspace, 1, 16, "workspace", err)))
        return HP_EINTERNAL;
    const hp_lt_plan copy = *p;
    return hp_cuda_checked(standin_give(p->lt->cuda->compute, [=] { compute(copy, at); }), "hp_lt_run", err);
}
}
