#!/bin/bash
# The inside of try-fleet.sh.
set -euo pipefail

state=$1
address=192.168.77.1
repository=$(realpath "$(dirname "$0")/../..")
machine=$state/machine

say() { echo "== $*"; }
k() { kubectl --namespace atoll "$@"; }

start_postgres() {
  local programs
  programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort | tail -n 1)
  mkdir -p "$state/database" /run/postgresql
  chown postgres "$state/database" /run/postgresql
  chmod 0755 "$state"
  runuser -u postgres -- "$programs/initdb" --pgdata "$state/database" --auth trust >/dev/null
  echo 'host all all 0.0.0.0/0 trust' >>"$state/database/pg_hba.conf"
  runuser -u postgres -- "$programs/postgres" -D "$state/database" -c listen_addresses=$address -c fsync=off >"$state/logs/postgres.log" 2>&1 &
  until "$programs/psql" --host $address --username postgres --command 'create database atoll' >/dev/null 2>&1; do sleep 0.5; done
}

make_secrets() {
  cd "$state"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=Atoll fleet' -keyout ca.key -out ca.crt 2>/dev/null
  cat ca.crt ca.key >ca.pem
  k create secret generic atoll-authority --from-file=ca.pem
  k create configmap atoll-authority --from-file=ca.crt
  k create secret generic atoll-encryption --from-literal=keys="$(openssl rand -hex 32)"
  k create secret generic atoll-admin --from-literal=token=operator-token-of-the-try
  k create secret generic atoll-database --from-literal=url="postgres://postgres@$address:5432/atoll"
  cd /
}

render() {
  # shellcheck disable=SC2086
  ${HELM:-helm} template atoll "$repository/deploy/helm/atoll" --namespace atoll --set image.repository=localhost/atoll --set image.tag=try \
    --set image.pullPolicy=Never --set keepApart=false --set edge.replicas=1 --set node.hostPath="$machine" \
    --set-string settings.ATOLL_BASE_MEMORY_MB=256 --set-string settings.ATOLL_READY_SANDBOXES=1 --set fleetApis="$1" >"$state/chart.yaml"
}

pod_address() { k get pods --selector "app.kubernetes.io/component=$1" --output jsonpath='{.items[0].status.podIP}'; }

kubectl create namespace atoll
make_secrets
start_postgres
mkdir -p "$machine/data/layers"
[ -z "${LAYERS:-}" ] || cp -a "$LAYERS"/. "$machine/data/layers/"
kubectl label node kube atoll-node=true

say 'apis'
render 192.0.2.1:3300
k apply --filename "$state/chart.yaml" --selector app.kubernetes.io/component=api
k rollout status deployment/atoll-api --timeout 15m
service=$(k get service atoll-api-fleet --output jsonpath='{.spec.clusterIP}')
api=$(pod_address api)
nft add element ip services targets "{ $service . 3300 : $api . 3300 }"

say 'edge and node'
render "$service:3300"
k apply --filename "$state/chart.yaml"
k rollout status deployment/atoll-edge --timeout 15m
k rollout status daemonset/atoll-node --timeout 30m
k get pods --output wide
edge=$(pod_address edge)

key=$(k logs --selector app.kubernetes.io/component=api --tail=-1 | sed -n 's/^First API key: //p')
atoll() {
  env ATOLL_DATA_DIR="$state/none" ATOLL_ADMIN_TOKEN=operator-token-of-the-try E2B_API_KEY="$key" E2B_API_URL="http://$api:3000" \
    E2B_SANDBOX_URL="http://$edge:3000" "$repository/node_modules/.bin/node" "$repository/apps/cli/src/main.ts" "$@"
}

say 'a sandbox with a counter'
k exec deployment/atoll-api -- atoll node list
sandbox=$(atoll sandbox create base --timeout 1h)
atoll sandbox exec "$sandbox" -- sh -c 'nohup sh -c "while :; do i=\$((i+1)); echo \$i >/tmp/count; sleep 1; done" >/dev/null 2>&1 & uname -a'
before=0
while [ "$before" -lt 5 ]; do before=$(atoll sandbox exec "$sandbox" -- cat /tmp/count 2>/dev/null || echo 0); done

say "the counter is at $before: deleting the pod of the node"
date -u +%T
k delete pod --selector app.kubernetes.io/component=node
k rollout status daemonset/atoll-node --timeout 30m
k get pods --selector app.kubernetes.io/component=node
after=$(atoll sandbox exec "$sandbox" -- cat /tmp/count)
date -u +%T
say "the counter is at $after in sandbox $sandbox"
k logs daemonset/atoll-node | grep node.start
[ "$after" -gt "$before" ]

if [ -n "${UPDATE:-}" ]; then
  say "updating the node to the image $UPDATE"
  k set image daemonset/atoll-node node="localhost/atoll:$UPDATE"
  k rollout status daemonset/atoll-node --timeout 30m
  say "the counter is at $(atoll sandbox exec "$sandbox" -- cat /tmp/count)"
  (cd "$machine" && ls -d machine/* releases/*)
fi
atoll sandbox kill "$sandbox"
