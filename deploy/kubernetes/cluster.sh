#!/bin/bash
# Runs a command with a Kubernetes cluster of one machine, and ends the cluster with it. Everything is in namespaces of its own
# (mounts, network, processes, control groups), so that nothing is left on this machine. Needs root and deploy/kubernetes/build.sh.
#
#   deploy/kubernetes/cluster.sh <folder of build.sh> <state folder> <command> [argument…]
#
#   WITH=api        etcd and the API server only, which check manifests
#   WITH=containerd containerd only
#   WITH=machine    all, with a kubelet: the machine "kube" (default)
#   IMAGES=…        image archives for containerd
#
# The command gets KUBECONFIG, and kubectl and ctr on its PATH. The state folder must not be in use, and stays for a look at its logs.
set -euo pipefail

build=$(realpath "$1")
mkdir -p "$2"
state=$(realpath "$2")
shift 2
with=${WITH:-machine}
here=$(dirname "$(realpath "$0")")
group=atoll-kube-$$

hierarchies() { awk '/ - cgroup2? / { print $5 }' /proc/self/mountinfo; }

enter_groups() {
  for folder in $(hierarchies); do
    mkdir "$folder/$group"
    # A new cpuset is empty, and takes no process before it has processors and memory.
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$folder/$group/$file" ] || cat "$folder/$file" >"$folder/$group/$file"
    done
    echo "$BASHPID" >"$folder/$group/cgroup.procs"
  done
}

leave_groups() {
  for folder in $(hierarchies); do
    for _ in $(seq 100); do
      [ -d "$folder/$group" ] || break
      find "$folder/$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done
}

trap leave_groups EXIT
(
  enter_groups
  exec unshare --mount --net --pid --cgroup --uts --ipc --fork --kill-child --propagation private \
    "$here/cluster-inside.sh" "$build" "$state" "$with" "$@"
)
