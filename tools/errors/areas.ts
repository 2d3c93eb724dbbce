/** Assigns each fault to the part of Atoll where its reader meets it. */

export type Area = 'api' | 'envd' | 'edge' | 'dashboard' | 'cli' | 'start' | 'node'

/** Areas by the start of the path; the first match counts. */
const areasByPath: ReadonlyArray<readonly [start: string, areas: readonly Area[]]> = [
  ['apps/api/src/db/store-identity.ts', ['start']],
  ['apps/api/src/db/encryption/key-check.ts', ['start']],
  ['apps/api/src/domain/lease.ts', ['start']],
  // Opening the database and using it fail alike.
  ['apps/api/src/db/postgres-errors.ts', ['api', 'start']],
  // The edge asks the API for these, and answers the client itself.
  ['apps/api/src/app/sandboxes/wake.ts', ['edge']],
  ['apps/api/src/app/sandboxes/find-signer.ts', ['edge']],
  ['apps/api/', ['api']],
  ['apps/envd/', ['envd']],
  ['apps/edge/', ['edge']],
  ['apps/server/src/dashboard/', ['dashboard']],
  ['apps/server/src/backup/', ['cli']],
  ['apps/server/', ['start']],
  ['apps/cli/', ['cli']],
  ['packages/client/', ['cli']],
  ['apps/node/src/setup/', ['start']],
  ['apps/node/src/debian/', ['start']],
  ['apps/node/src/net/free-subnet.ts', ['start']],
  ['apps/node/src/domain/network/slot.ts', ['start']],
  ['apps/node/src/template/layer.ts', ['node']],
  // The start builds `base`, and an install builds the other templates of the catalogue.
  ['apps/node/src/template/', ['start', 'node']],
  ['apps/node/', ['node']],
  ['packages/objects/src/settings.ts', ['start']],
  ['packages/objects/', ['node']],
  // The node passes these on; API and command line catch their own.
  ['packages/kit/src/address-ranges.ts', ['node']],
  ['packages/kit/src/wait.ts', ['node']],
  // Reading the file fails a start, and writing it a rotation.
  ['packages/kit/src/encryption/key-file.ts', ['start', 'api']],
  ['packages/kit/src/encryption/key-ring.ts', ['api']],
  // The command line reports it as a usage error.
  ['packages/kit/src/dockerfile/', ['api']],
  // `Fault.from`: an unexpected error.
  ['packages/kit/src/fault.ts', ['api', 'envd', 'dashboard', 'node']],
]

export function areasOf(path: string): readonly Area[] | undefined {
  return areasByPath.find(([start]) => path.startsWith(start))?.[1]
}
