#!/bin/sh
# Starts the agent of a node in a pod: run-node.sh <folder of the machine> [command of atoll, default: node run]
#
# Sandboxes outlive the pod. The mounts and programs that they use must too, so the agent does not run in the file system of its
# container, which ends with the pod. It runs in the "machine": a mount namespace that the first pod after a boot creates,
# and that a file in /run of the host keeps. Its root is a copy of the image on the disk of the host, which stays when the image
# is deleted.
#
#   <folder>/machine/<image>    root of the machine: Debian and its programs, of the first image since boot
#   <folder>/releases/<image>   Atoll itself, of the current image
#   <folder>/data               ATOLL_DATA_DIR
#
# Needs a privileged container in the PID namespace of the host, and <folder> mounted at the same path as on the host.
set -eu

folder=$1
shift
[ $# -gt 0 ] || set -- node run
image=$(cat /etc/atoll-image)
host=/proc/1/root
keep=/run/atoll-machine
root=$folder/machine/$image
release=$folder/releases/$image

say() { echo "run-node: $*" >&2; }

if ! [ -d "$host$folder" ] || ! [ "$folder" -ef "$host$folder" ]; then
  say "$folder must be the same folder of the host, in a privileged pod with hostPID"
  exit 1
fi

# Programs of the host may be few or none: those in its mount namespace are busybox, which is static.
on_host() { nsenter --target 1 --mount --cgroup -- "$root/bin/busybox" "$@"; }
in_machine() { nsenter --target 1 --cgroup --mount="$host$keep/mnt" -- "$@"; }

# copy <source> <target> [tar options]: the target is complete or absent.
copy() {
  source=$1 target=$2
  shift 2
  [ ! -e "$target" ] || return 0
  say "copying $source to $target"
  rm -rf "$target.partial"
  mkdir -p "$target.partial"
  tar --create --directory "$source" --one-file-system "$@" . | tar --extract --directory "$target.partial" --numeric-owner --preserve-permissions
  sync -f "$target.partial"
  mv "$target.partial" "$target"
}

# Runs in a new copy of the host's mount namespace. Leaves nothing of the host in it but devices, kernel files and the folder.
enter_root='
busybox=$1 keep=$2 root=$3 folder=$4
"$busybox" mount --bind "$root" "$keep/root"
for name in proc sys dev; do "$busybox" mount --rbind "/$name" "$keep/root/$name"; done
"$busybox" mount -t tmpfs -o mode=0755 tmpfs "$keep/root/run"
"$busybox" mount -t tmpfs -o mode=0700 tmpfs "$keep/root/etc/atoll"
"$busybox" mkdir -p "$keep/root$folder"
"$busybox" mount --rbind "$folder" "$keep/root$folder"
cd "$keep/root"
"$busybox" pivot_root . mnt
"$busybox" umount -l /mnt
'

prepare_host='
busybox=$1 keep=$2
"$busybox" mkdir -p "$keep"
if ! "$busybox" grep -q " $keep " /proc/self/mountinfo; then
  "$busybox" mount -t tmpfs -o mode=0700 tmpfs "$keep"
  # The kernel keeps no mount namespace in a shared mount.
  "$busybox" mount --make-private "$keep"
fi
"$busybox" mkdir -p "$keep/root"
: >>"$keep/mnt"
'

create_machine() {
  for other in "$folder"/machine/*; do
    [ "$other" = "$root" ] || rm -rf "$other"
  done
  copy / "$root" --exclude=./opt/atoll --exclude=./tmp/* --exclude=./var/cache/*
  on_host sh -euc "$prepare_host" prepare "$root/bin/busybox" "$keep"
  # Where the namespace of the host is young, the kernel may take a new one for older, and refuse to keep it: it compares numbers
  # that each CPU draws from its own batch.
  attempt=0
  until taskset --cpu-list $((attempt % $(nproc --all))) nsenter --target 1 --mount --cgroup -- \
    "$root/bin/busybox" unshare --mount="$keep/mnt" --propagation private \
    "$root/bin/busybox" sh -euc "$enter_root" enter "$root/bin/busybox" "$keep" "$root" "$folder"; do
    attempt=$((attempt + 1))
    [ $attempt -lt 1000 ] || exit 1
  done
}

# Of two pods that start at once, one creates the machine.
exec 9>"$folder/.lock"
flock 9
in_machine true 2>/dev/null || create_machine
for other in "$folder"/releases/*; do
  [ "$other" = "$release" ] || rm -rf "$other"
done
copy /opt/atoll "$release"
# Names and files that Kubernetes gives to this pod.
for file in resolv.conf hosts; do in_machine tee "/etc/$file" <"/etc/$file" >/dev/null; done
in_machine find /etc/atoll -mindepth 1 -delete
tar --create --dereference --directory /etc/atoll --exclude='..*' . | in_machine tar --extract --directory /etc/atoll --no-same-owner
flock --unlock 9
exec 9>&-

# As in the systemd unit: the agent and its sandboxes never need these.
drop=-sys_module,-sys_boot,-sys_time,-sys_rawio,-syslog,-sys_pacct,-sys_tty_config,-wake_alarm,-block_suspend,-lease
drop=$drop,-audit_control,-audit_read,-mac_admin,-mac_override
exec nsenter --target 1 --cgroup --mount="$host$keep/mnt" -- \
  setpriv --bounding-set "$drop" --inh-caps "$drop" -- \
  "$release/node_modules/.bin/node" --disable-warning=ExperimentalWarning "$release/apps/cli/src/main.ts" "$@"
