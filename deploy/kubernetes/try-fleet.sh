#!/bin/bash
# Installs the chart in a cluster of one machine, runs a sandbox with a counter, deletes the pod of its node, and shows that the
# counter goes on. Needs PostgreSQL's programs, and the image of deploy/docker as an archive named atoll:try.
#
#   HELM=helm IMAGES=atoll.tar deploy/kubernetes/try-fleet.sh <folder of build.sh> <state folder>
#
#   LAYERS=…    folder of layers to begin with: the cluster has no network to build the base template
#   UPDATE=…    tag of another image in IMAGES, to which the node is updated
set -euo pipefail

here=$(dirname "$(realpath "$0")")
mkdir -p "$2"
exec "$here/cluster.sh" "$1" "$2" "$here/try-fleet-inside.sh" "$(realpath "$2")"
