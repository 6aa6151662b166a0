#!/bin/bash
# scaling-curve.sh - ResNet-50 from 1 to 64 GPUs with 32 images each, by data parallelism with and without sharded state.
set -eu
hplan simulate --net resnet50 --machine summit --gpus 1,2,4,...,64 --batch-per-gpu 32 --strategy "dp=*" --strategy "dp=*,zero=1"
hplan plot scaling plan.db -o scaling.svg
