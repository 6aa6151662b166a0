/* lt.c - matrix products of dense layers. cuBLASLt is column-major: a row-major (r, c)
 * matrix is its (c, r). */
#include "exec/cuda/dnn/lt.h"

#include <cublasLt.h>
#include <stdlib.h>

struct hp_lt {
    hp_cuda *cuda;
    cublasLtHandle_t handle;
    hp_lt_plan *plans;
};

struct hp_lt_plan {
    hp_lt_plan *next;
    hp_lt *lt;
    hp_lt_product p;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace;
};

static hp_status checked(cublasStatus_t code, const char *call, hp_error *err) {
    if (code == CUBLAS_STATUS_SUCCESS) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "%.60s: %s", call, cublasLtGetStatusString(code));
}
#define LT(call) HP_TRY(checked(call, #call, err))

hp_status hp_lt_open(hp_cuda *cuda, hp_lt **lt, hp_error *err) {
    cublasLtHandle_t handle;
    LT(cublasLtCreate(&handle));
    *lt = calloc(1, sizeof **lt);
    HP_ASSERT(*lt);
    (*lt)->cuda = cuda;
    (*lt)->handle = handle;
    return HP_OK;
}

static void free_plan(hp_lt_plan *p) {
    cublasLtMatrixLayoutDestroy(p->a);
    cublasLtMatrixLayoutDestroy(p->b);
    cublasLtMatrixLayoutDestroy(p->c);
    cublasLtMatmulDescDestroy(p->product);
    free(p);
}

void hp_lt_close(hp_lt *lt) {
    if (!lt) return;
    for (hp_lt_plan *p = lt->plans, *next; p; p = next) {
        next = p->next;
        free_plan(p);
    }
    cublasLtDestroy(lt->handle);
    free(lt);
}

/* --- the product in cuBLASLt's words: c = op(a) op(b) --- */

static cudaDataType_t type_of(int32_t dtype) {
    return dtype == HP_BF16 ? CUDA_R_16BF : dtype == HP_F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* Describes a row-major matrix to cuBLASLt as its column-major transpose. */
static hp_status matrix(int32_t dtype, int64_t rows, int64_t columns, cublasLtMatrixLayout_t *out,
                        hp_error *err) {
    LT(cublasLtMatrixLayoutCreate(out, type_of(dtype), (uint64_t)columns, (uint64_t)rows, columns));
    return HP_OK;
}

static hp_status set(hp_lt_plan *p, cublasLtMatmulDescAttributes_t name, const void *value, size_t size,
                     hp_error *err) {
    LT(cublasLtMatmulDescSetAttribute(p->product, name, value, size));
    return HP_OK;
}

static hp_status describe(hp_lt_plan *p, bool transpose_a, bool transpose_b, hp_error *err) {
    const bool rounds = p->p.dtype == HP_F32 && p->p.math == HP_DNN_TF32;
    const cublasOperation_t op[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
    LT(cublasLtMatmulDescCreate(&p->product, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                CUDA_R_32F));
    HP_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSA, &op[transpose_a], sizeof *op, err));
    HP_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSB, &op[transpose_b], sizeof *op, err));
    return p->p.bias ? set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias, err) : HP_OK;
}

/* Column-major: y^T (n, m) = w x^T (w^T x^T where inputs are first), dx^T (k, m) = w^T dy^T,
 * dw^T (k, n) = x^T dy. */
static hp_status express(hp_lt_plan *l, hp_error *err) {
    const hp_lt_product *p = &l->p;
    const bool forward = p->kind == HP_LT_FORWARD, wgrad = p->kind == HP_LT_WGRAD, swapped = p->inputs_first;
    HP_TRY(describe(l, forward && !swapped, wgrad, err));
    HP_TRY(wgrad ? matrix(p->dtype, p->m, p->k, &l->a, err)
                 : matrix(p->dtype, swapped ? p->k : p->n, swapped ? p->n : p->k, &l->a, err));
    HP_TRY(forward ? matrix(p->dtype, p->m, p->k, &l->b, err) : matrix(p->dtype, p->m, p->n, &l->b, err));
    return matrix(p->result, wgrad ? p->n : p->m, forward ? p->n : p->k, &l->c, err);
}

/* The arena aligns buffers to 64 bytes; cuBLASLt assumes 256 unless told otherwise. */
static hp_status wish_alignment(cublasLtMatmulPreference_t wish, hp_error *err) {
    static const cublasLtMatmulPreferenceAttributes_t OPERANDS[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t bytes = 16;
    for (size_t i = 0; i < sizeof OPERANDS / sizeof *OPERANDS; i++)
        LT(cublasLtMatmulPreferenceSetAttribute(wish, OPERANDS[i], &bytes, sizeof bytes));
    return HP_OK;
}

static hp_status ask(hp_lt_plan *p, cublasLtMatmulPreference_t wish, int64_t workspace, hp_error *err) {
    const size_t most = (size_t)workspace;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* partial sums stay float32 */
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    HP_TRY(wish_alignment(wish, err));
    LT(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                            sizeof most));
    LT(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums,
                                            sizeof sums));
    LT(cublasLtMatmulAlgoGetHeuristic(p->lt->handle, p->product, p->a, p->b, p->c, p->c, wish, 1, &found,
                                      &n));
    if (n == 0) return hp_fail(err, HP_EUNAVAIL, "cuBLASLt names no algorithm");
    p->algorithm = found.algo;
    p->workspace = (int64_t)found.workspaceSize;
    return HP_OK;
}

static hp_status choose(hp_lt_plan *p, int64_t workspace, hp_error *err) {
    cublasLtMatmulPreference_t wish;
    LT(cublasLtMatmulPreferenceCreate(&wish));
    const hp_status s = ask(p, wish, workspace, err);
    cublasLtMatmulPreferenceDestroy(wish);
    return s;
}

hp_status hp_lt_plan_product(hp_lt *lt, const hp_lt_product *p, int64_t workspace, hp_lt_plan **plan,
                             hp_error *err) {
    hp_error why;
    HP_ASSERT(!p->bias || (p->kind == HP_LT_FORWARD && p->result == HP_F32));
    hp_lt_plan *l = calloc(1, sizeof *l);
    HP_ASSERT(l);
    l->lt = lt;
    l->p = *p;
    hp_status s = express(l, &why);
    if (s == HP_OK) s = choose(l, hp_cuda_workspace_left(workspace), &why);
    if (s != HP_OK) {
        free_plan(l);
        return hp_fail(err, s, "a dense layer of %lld x %lld weights and %lld samples: %.300s",
                       (long long)p->n, (long long)p->k, (long long)p->m, why.text);
    }
    l->next = lt->plans;
    *plan = lt->plans = l;
    return HP_OK;
}

hp_status hp_lt_run(hp_lt_plan *p, const hp_dnn_data *data, hp_error *err) {
    const float one = 1, keep = p->p.add ? 1 : 0;
    const bool wgrad = p->p.kind == HP_LT_WGRAD;
    void *const a = wgrad ? data->x : data->w, *const b = p->p.kind == HP_LT_FORWARD ? data->x : data->y;
    void *const c = p->p.kind == HP_LT_FORWARD ? data->y : wgrad ? data->w : data->x;
    if (p->p.bias)
        HP_TRY(set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&data->bias, sizeof data->bias, err));
    LT(cublasLtMatmul(p->lt->handle, p->product, &one, a, p->a, b, p->b, &keep, c, p->c, c, p->c,
                      &p->algorithm, hp_cuda_workspace_at(data->workspace), (size_t)p->workspace,
                      p->lt->cuda->compute));
    return HP_OK;
}
