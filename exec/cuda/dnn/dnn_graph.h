/* dnn_graph.h - inside of dnn.h: cuDNN's descriptors with an owner, and a convolution as an operation graph.
 *
 * The first error stays in the owner and turns all later calls into no-ops, so building a graph needs no
 * error handling. The owner destroys its descriptors in reverse order. */
#ifndef HP_DNN_GRAPH_H
#define HP_DNN_GRAPH_H

#include "exec/cuda/dnn/dnn.h"

#include <cudnn.h>

typedef struct hp_dnn_owner {
    int32_t n, room;
    cudnnBackendDescriptor_t *made;
    cudnnStatus_t status; /* status of the first failure */
    char text[256];       /* cuDNN's message for it */
} hp_dnn_owner;

cudnnBackendDescriptor_t hp_dnn_make(hp_dnn_owner *o, cudnnBackendDescriptorType_t type);
void hp_dnn_set(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value);
void hp_dnn_set_int(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    int64_t value);
void hp_dnn_set_desc(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value);
void hp_dnn_finish(hp_dnn_owner *o, cudnnBackendDescriptor_t d);
/* Moves the descriptor to `to`. */
void hp_dnn_give(hp_dnn_owner *from, cudnnBackendDescriptor_t d, hp_dnn_owner *to);
/* Destroys all descriptors and clears the failure. */
void hp_dnn_release(hp_dnn_owner *o);

/* Tensor ids in a variant pack. */
typedef enum hp_dnn_uid { HP_DNN_X = 1, HP_DNN_W, HP_DNN_Y, HP_DNN_Z, HP_DNN_BIAS } hp_dnn_uid;

/* The finalised operation graph of a convolution with its epilogue. handle: of the target GPU; NULL if
 * engines are requested for a description of one. With neither, heuristics name engines, but none of their
 * plans can be finalised (cuDNN 9.19 on an H100: "assert_finalized"). */
cudnnBackendDescriptor_t hp_dnn_graph_of(hp_dnn_owner *o, cudnnHandle_t handle, const hp_dnn_conv *c);

#endif
