#!/bin/bash
# first-plan.sh - a plan for two cores of this machine, run for 20 steps, and held against its prediction.
set -eu
hplan simulate --net cnn --image 28 --gpus 2 --machine local --batch 64
hplan run plan.db --data synthetic --steps 20
hplan compare run.db
