#!/bin/bash
# Applies the chart to a real API server, which refuses wrong manifests. Nothing runs.
#
#   HELM=helm deploy/kubernetes/check-chart.sh <folder of build.sh> <state folder> [options of helm template]
set -euo pipefail

here=$(dirname "$(realpath "$0")")
build=$1 state=$2
shift 2
mkdir -p "$state"
# shellcheck disable=SC2086
${HELM:-helm} template atoll "$here/../helm/atoll" --namespace atoll "$@" >"$state/chart.yaml"
# The same with a field that does not exist: the check must be able to fail.
sed 's/terminationGracePeriodSeconds/terminationGracePeriodSecond/' "$state/chart.yaml" >"$state/wrong.yaml"

WITH=api exec "$here/cluster.sh" "$build" "$state" bash -euc '
  kubectl create namespace atoll
  kubectl --namespace atoll apply --filename "$1/chart.yaml"
  kubectl --namespace atoll get deployments,daemonsets,services,poddisruptionbudgets,networkpolicies,serviceaccounts
  if kubectl --namespace atoll apply --dry-run=server --filename "$1/wrong.yaml" >"$1/wrong.log" 2>&1; then
    echo "the API server accepts a misspelt field" >&2
    exit 1
  fi
  grep -m 1 "unknown field" "$1/wrong.log"
' check "$(realpath "$state")"
