#!/bin/bash
# package.sh - the Debian package: built by cli/packaging/deb.sh, unpacked it needs no library that it does not name, and installed in
# a clean Debian (debootstrap, as root, from the mirror that apt uses) it runs what ./bootstrap demo runs, as a user.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
command -v dpkg-shlibdeps >/dev/null || exit 77
HPLAN_DEB_BUILD=$scratch/build timeout -k 5 1500 "$HPLAN_SOURCE/cli/packaging/deb.sh" "$scratch" >log 2>&1 || complain "deb.sh: $(tail -3 log)"
package=$(ls hplan_*.deb) || {
  complain "no package"
  conclude
}
mkdir unpacked && dpkg-deb -x "$package" unpacked
for program in hplan hplan-exec; do
  ! ldd "unpacked/usr/bin/$program" | grep "not found" || complain "$program lacks libraries"
done
unpacked/usr/bin/hplan --version | grep -q '^hplan [0-9]' || complain "it does not run where it is unpacked"
gzip -dc unpacked/usr/share/man/man1/hplan-simulate.1.gz | head -1 | grep -q '^\.TH HPLAN' || complain "no page"
[ -e unpacked/usr/share/doc/hplan/copyright ] || complain "no copyright"
if command -v lintian >/dev/null; then
  lintian --fail-on error "$package" >lint 2>&1 || complain "lintian: $(grep '^E' lint)"
fi

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # these are apt's variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' "Created-By: Packages" | awk "/ $release main\$/ {print \$1; exit}")
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || ! unshare -m true 2>/dev/null || [ -z "$mirror" ]; then
  echo "no clean Debian: that takes root, debootstrap and a mirror" >&2
  conclude "the package, unpacked"
  exit
fi
timeout -k 5 1500 debootstrap --variant=minbase "$release" root "$mirror" >log 2>&1 || complain "debootstrap: $(tail -2 log)"
cp "$package" root/hplan.deb
cp /etc/resolv.conf root/etc/
cat >root/try.sh <<'TRY'
set -eu
cd
hplan doctor
hplan calibrate --net cnn --image 28 --batch 64 --gpus 2 --seconds 8 -o local.cost
hplan simulate --net cnn --image 28 --classes 10 --gpus 2 --machine local --batch 64 --cost local.cost --out plan.db
hplan run plan.db --data fashion-mnist --steps 20 --eval --trace run.db
hplan plot timeline run.db -o timeline.svg
hplan plot error run.db -o error.svg
hplan compare run.db
man hplan-simulate | grep -q -- --machine
python3 -c 'import hplan, pandas
steps = hplan.read("run.db")["steps"]
assert isinstance(steps, pandas.DataFrame) and len(steps) == 20, steps
assert hplan.compare("run.db")["step"]["measured_s"] > 0'
TRY
cat >inside.sh <<'INSIDE'
set -eu
mount -t proc proc root/proc
mount --rbind /dev root/dev
chroot root apt-get -q update
chroot root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install \
  ./hplan.deb gnuplot-nox python3-pandas man-db dataset-fashion-mnist
chroot root useradd -m somebody
chroot root su - somebody -c 'bash /try.sh'
INSIDE
[ "$failures" != 0 ] || timeout -k 5 1700 unshare -m bash inside.sh >log 2>&1 </dev/null || complain "in a clean Debian: $(tail -5 log)"
conclude "the package, in a clean Debian"
