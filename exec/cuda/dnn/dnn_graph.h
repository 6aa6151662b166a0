/* dnn_graph.h - inside of dnn.h: cuDNN's descriptors with an owner, and a convolution as an operation graph.
 *
 * The first call that fails sticks in the owner and makes all later ones do nothing, so that building a graph
 * has no error handling; the owner destroys what it made, last first. */
#ifndef HP_DNN_GRAPH_H
#define HP_DNN_GRAPH_H

#include "exec/cuda/dnn/dnn.h"

#include <cudnn.h>

typedef struct hp_dnn_owner {
    int32_t n, room;
    cudnnBackendDescriptor_t *made;
    cudnnStatus_t status; /* of the first failure */
    char text[256];       /* what cuDNN said of it */
} hp_dnn_owner;

cudnnBackendDescriptor_t hp_dnn_make(hp_dnn_owner *o, cudnnBackendDescriptorType_t type);
void hp_dnn_set(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value);
void hp_dnn_set_int(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    int64_t value);
void hp_dnn_set_desc(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value);
void hp_dnn_finish(hp_dnn_owner *o, cudnnBackendDescriptor_t d);
/* The descriptor is `to`'s from now on. */
void hp_dnn_give(hp_dnn_owner *from, cudnnBackendDescriptor_t d, hp_dnn_owner *to);
/* Destroys all and forgets the failure. */
void hp_dnn_release(hp_dnn_owner *o);

/* Tensors as a variant pack names them. */
typedef enum hp_dnn_uid { HP_DNN_X = 1, HP_DNN_W, HP_DNN_Y, HP_DNN_Z, HP_DNN_BIAS } hp_dnn_uid;

/* The finished operation graph of a convolution, with what is fused into it. handle: of the GPU it is for;
 * NULL where engines are asked for by a description: without either, heuristics name engines and no plan of
 * theirs can be finished (cuDNN 9.19 on an H100: "assert_finalized"). */
cudnnBackendDescriptor_t hp_dnn_graph_of(hp_dnn_owner *o, cudnnHandle_t handle, const hp_dnn_conv *c);

#endif
