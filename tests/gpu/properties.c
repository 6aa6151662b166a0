/* properties.c - this GPU as cuDNN describes it (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): with that text
 * plans are checked where there is no GPU (tests/data/, hp_dnn_open_like). */
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

static void must(cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, cudnnGetErrorString(status));
    exit(69);
}

int main(void) {
    static char text[1 << 16];
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t d;
    int64_t n = 0;
    must(cudnnCreate(&handle), "cudnnCreate");
    must(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d), "the descriptor");
    must(cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle),
         "the handle");
    must(cudnnBackendFinalize(d), "finalize");
    must(cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                  sizeof text - 1, &n, text),
         "the text");
    puts(text);
    cudnnBackendDestroyDescriptor(d);
    cudnnDestroy(handle);
    return 0;
}
