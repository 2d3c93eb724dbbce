#!/bin/bash
# Builds Kubernetes from Debian's source package, and unpacks the other programs of a control plane: etcd, containerd, CNI
# plugins. Installs nothing on the machine. Takes 20 to 40 minutes of CPU time the first time.
#
#   deploy/kubernetes/build.sh [folder]        default: /var/tmp/kube-build
set -euo pipefail

folder=${1:-/var/tmp/kube-build}
parts='kube-apiserver kubelet kube-controller-manager kube-scheduler kubectl'
packages='golang-1.19-go golang-1.19-src etcd-server etcd-client containerd containernetworking-plugins rsync libpopt0 libxxhash0 jq libjq1 libonig5'

mkdir -p "$folder/apt/sources" "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/debs"
cd "$folder"

# A copy of the machine's package sources, with source packages: the machine's own lists stay as they are.
sources() {
  for file in /etc/apt/sources.list.d/*.sources; do
    case $file in *backports*) continue ;; esac
    sed 's/^Types:.*/Types: deb deb-src/' "$file" >"apt/sources/$(basename "$file")"
  done
}
apt() {
  apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/apt/sources" \
    -o Dir::State::lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root "$@"
}

if [ "$(cat .packages 2>/dev/null)" != "$packages" ]; then
  sources
  apt -q update
  # shellcheck disable=SC2086
  (cd debs && apt -q download $packages)
  for deb in debs/*.deb; do dpkg-deb --extract "$deb" root; done
  echo "$packages" >.packages
fi

if [ ! -e .source ]; then
  rm -rf src
  apt -q source --download-only kubernetes
  dpkg-source -x kubernetes_*.dsc src
  touch .source
fi

version=$(sed -n 's/^Version: .*really\([0-9.]*\)-.*/\1/p' kubernetes_*.dsc | head -n 1)
cat >version.sh <<END
KUBE_GIT_COMMIT=debian
KUBE_GIT_TREE_STATE=archive
KUBE_GIT_VERSION=v$version
KUBE_GIT_MAJOR=1
KUBE_GIT_MINOR=$(echo "$version" | cut -d. -f2)
END

export PATH=$folder/root/usr/lib/go-1.19/bin:$folder/root/usr/bin:$PATH
export LD_LIBRARY_PATH=$folder/root/usr/lib/$(uname -m)-linux-gnu
export GOROOT=$folder/root/usr/lib/go-1.19 GOCACHE=$folder/cache GOPATH=$folder/go GO111MODULE=off
export CGO_ENABLED=0 KUBE_GIT_VERSION_FILE=$folder/version.sh HOME=$folder
mkdir -p "$folder/go/src/k8s.io"
ln -sfn "$folder/src" "$folder/go/src/k8s.io/kubernetes"
cd "$folder/go/src/k8s.io/kubernetes"
[ -e "$folder/.generated" ] || make generated_files
touch "$folder/.generated"

fields=$(. "$folder/version.sh" && echo gitVersion="$KUBE_GIT_VERSION" gitMajor="$KUBE_GIT_MAJOR" gitMinor="$KUBE_GIT_MINOR" gitCommit=debian)
flags='-s -w'
for field in $fields; do
  for package in client-go/pkg/version component-base/version; do
    flags="$flags -X k8s.io/kubernetes/vendor/k8s.io/$package.$field"
  done
done
# One after the other, the most useful first: the API server alone checks manifests. Without clients of clouds and of Docker.
for part in $parts; do
  [ -x "$folder/bin/$part" ] && continue
  go build -p "${JOBS:-$(nproc)}" -trimpath -ldflags "$flags" -tags notest,providerless,dockerless -o "$folder/bin/$part" "k8s.io/kubernetes/cmd/$part"
  echo "built $part"
done
