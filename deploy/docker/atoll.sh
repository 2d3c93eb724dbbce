#!/bin/sh
# The command `atoll` of the image. Unlike bin/atoll it installs nothing.
exec /opt/atoll/node_modules/.bin/node --disable-warning=ExperimentalWarning /opt/atoll/apps/cli/src/main.ts "$@"
