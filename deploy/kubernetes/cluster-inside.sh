#!/bin/bash
# The inside of cluster.sh: PID 1 of the cluster's machine.
set -euo pipefail

build=$1 state=$2 with=$3
shift 3
address=192.168.77.1
services=10.96.0.0/16
apiserver=10.96.0.1
logs=$state/logs

prepare_machine() {
  local controllers
  controllers=$(awk '/ - cgroup / { print $5 }' /proc/self/mountinfo | xargs -n 1 basename)
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  if [ -n "$controllers" ]; then
    mount -t tmpfs tmpfs /sys/fs/cgroup
    for controller in $controllers; do
      mkdir -p "/sys/fs/cgroup/$controller"
      local options=$controller
      [ "$controller" != systemd ] || options=none,name=systemd
      mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$controller"
    done
  else
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
  fi
  mount -t tmpfs tmpfs /run
  mkdir -p "$state"/{logs,pod-logs,kubelet,containerd,etcd,pki,postgresql} /run/lock
  mount --bind "$state/pod-logs" /var/log
  # The kubelet would change these for the whole machine.
  local setting
  for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    cat "/proc/sys/$setting" >"$state/${setting//\//.}"
    mount --bind "$state/${setting//\//.}" "/proc/sys/$setting"
  done
  # What a kubelet and its containers expect of a machine.
  mount --make-rshared /
  hostname kube
  ip link set lo up
  ip link add machine type veth peer name outside
  ip link set outside up
  ip address add "$address/24" dev machine
  ip link set machine up
  ip route add default via 192.168.77.254
  sysctl -q -w net.ipv4.ip_forward=1
  # In place of kube-proxy, which needs iptables: the Service of the API server. Others are added with `nft add element`.
  nft -f - <<END
table ip services {
  map targets { type ipv4_addr . inet_service : ipv4_addr . inet_service; elements = { $apiserver . 443 : $address . 6443 } }
  chain pods { type nat hook prerouting priority dstnat; dnat ip to ip daddr . tcp dport map @targets; }
  chain machine { type nat hook output priority -100; dnat ip to ip daddr . tcp dport map @targets; }
}
END
}

make_certificates() {
  cd "$state/pki"
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=kubernetes -keyout ca.key -out ca.crt 2>/dev/null
  openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout server.key -out server.csr 2>/dev/null
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out server.crt 2>/dev/null -extfile <(
    echo "subjectAltName=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,IP:$address,IP:$apiserver"
  )
  openssl genrsa -out accounts.key 2048 2>/dev/null
  echo "$(openssl rand -hex 16),admin,admin,system:masters" >tokens.csv
  local token
  token=$(cut -d, -f1 tokens.csv)
  export KUBECONFIG=$state/kubeconfig
  cat >"$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{ name: kube, cluster: { server: 'https://$address:6443', certificate-authority: $state/pki/ca.crt } }]
users: [{ name: admin, user: { token: $token } }]
contexts: [{ name: kube, context: { cluster: kube, user: admin } }]
current-context: kube
END
  cd /
}

start() {
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1 </dev/null &
}

wait_for() {
  local what=$1
  shift
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.5
  done
  echo "cluster: $what did not come; its log is in $logs" >&2
  exit 1
}

start_control_plane() {
  start etcd env ETCD_UNSUPPORTED_ARCH="$(dpkg --print-architecture)" etcd --data-dir "$state/etcd" --unsafe-no-fsync
  wait_for etcd curl -sf http://127.0.0.1:2379/health
  local pki=$state/pki
  start kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range="$services" \
    --advertise-address="$address" --secure-port=6443 --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" \
    --token-auth-file="$pki/tokens.csv" --authorization-mode=RBAC,Node --allow-privileged=true \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/accounts.key" \
    --service-account-signing-key-file="$pki/accounts.key" --kubelet-preferred-address-types=InternalIP
  wait_for kube-apiserver kubectl get --raw /readyz
}

start_controllers() {
  local pki=$state/pki
  start kube-controller-manager kube-controller-manager --kubeconfig="$KUBECONFIG" --leader-elect=false --root-ca-file="$pki/ca.crt" \
    --service-account-private-key-file="$pki/accounts.key" --use-service-account-credentials=false
  start kube-scheduler kube-scheduler --kubeconfig="$KUBECONFIG" --leader-elect=false
}

start_containerd() {
  mkdir -p "$state/cni"
  cat >"$state/cni/10-bridge.conflist" <<END
{ "cniVersion": "0.4.0", "name": "pods", "plugins": [
  { "type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.244.0.0/24" }]], "routes": [{ "dst": "0.0.0.0/0" }], "dataDir": "/run/cni" } } ] }
END
  cat >"$state/containerd.toml" <<END
version = 2
root = "$state/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$build/root/usr/lib/cni"
conf_dir = "$state/cni"
END
  start containerd containerd --config "$state/containerd.toml"
  wait_for containerd ctr version
  make_pause_image
  local name
  for name in "$state/pause.tar" ${IMAGES:-}; do ctr --namespace k8s.io images import "$name" >>"$logs/images.log"; done
}

start_kubelet() {
  cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
resolvConf: $state/resolv.conf
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
evictionHard: { nodefs.available: 1Gi }
imageGCHighThresholdPercent: 100
END
  echo 'nameserver 192.0.2.1' >"$state/resolv.conf"
  start kubelet kubelet --kubeconfig="$KUBECONFIG" --config="$state/kubelet.yaml" --root-dir="$state/kubelet" --hostname-override=kube \
    --node-ip="$address" --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock
  wait_for kubelet kubectl wait --for=condition=Ready node/kube --timeout=1s
}

# The image of the container that holds the namespaces of a pod: one program, which waits.
make_pause_image() {
  local folder=$state/pause
  mkdir -p "$folder/root"
  echo '#include <unistd.h>
int main(void) { for (;;) pause(); }' >"$folder/pause.c"
  musl-gcc -static -Os -o "$folder/root/pause" "$folder/pause.c"
  tar --create --file "$folder/layer.tar" --directory "$folder/root" pause
  local layer architecture
  layer=$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)
  architecture=$(dpkg --print-architecture)
  echo "{\"architecture\":\"$architecture\",\"os\":\"linux\",\"config\":{\"Entrypoint\":[\"/pause\"]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:$layer\"]}}" >"$folder/config.json"
  echo '[{"Config":"config.json","RepoTags":["localhost/pause:1"],"Layers":["layer.tar"]}]' >"$folder/manifest.json"
  tar --create --file "$state/pause.tar" --directory "$folder" manifest.json config.json layer.tar
}

# Processes in a frozen v1 group, such as pre-warmed sandboxes, cannot die, and so the namespace could not end.
thaw() {
  local file
  find /sys/fs/cgroup -name freezer.state 2>/dev/null | while read -r file; do echo THAWED >"$file"; done
}
trap thaw EXIT

# PID 1 ends everything in its namespace when it ends. Zombies of the cluster are reaped by the shell while it waits.
export PATH=$build/bin:$build/root/usr/bin:$build/root/usr/sbin:$build/root/sbin:$PATH
export LD_LIBRARY_PATH=$build/root/usr/lib/$(uname -m)-linux-gnu
prepare_machine
case $with in
  api) steps='make_certificates start_control_plane' ;;
  containerd) steps=start_containerd ;;
  *) steps='make_certificates start_control_plane start_controllers start_containerd start_kubelet' ;;
esac
for step in $steps; do "$step"; done
"$@" &
wait $!
