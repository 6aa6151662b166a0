#!/bin/bash
# deb.sh [FOLDER] - builds this checkout in build-deb/ and leaves hplan_VERSION_ARCHITECTURE.deb in FOLDER (here). Without a GPU's part.
# Needs what ./bootstrap build installs, and dpkg-dev.
set -euo pipefail
out=$(realpath "${1:-.}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${HPLAN_DEB_BUILD:-build-deb}
cmake -S . -B "$build" -G Ninja -DBUILD_TESTING=OFF -DHPLAN_EXEC=ON -DHP_WITH_CUDA=OFF \
  -DHPLAN_ZSH_DIR=share/zsh/vendor-completions -DCMAKE_SKIP_INSTALL_RPATH=ON # Debian's libraries lie where the loader looks
cmake --build "$build" -j "$(nproc)" --target programs
cd "$build"
cpack -G DEB -B packages
cp packages/hplan_*.deb "$out"
