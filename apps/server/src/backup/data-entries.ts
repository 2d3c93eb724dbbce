/**
 * Lists the entries of the data directory, and how a backup treats each. A new file or folder of Atoll belongs in this table.
 *
 * - `copy`: a small file, or a folder of small files, copied as it is.
 * - `store`: copied by SQLite.
 * - `node`: captured by the node, see `apps/node/src/capture.ts`.
 * - `leave`: not in a backup.
 */
export type Treatment = 'copy' | 'store' | 'node' | 'leave'

const treatments: Readonly<Record<string, Treatment>> = {
  'store-id': 'copy',
  'node.json': 'copy',
  'credentials.json': 'copy',
  // Keys that encrypt secrets in the store and in records of the node.
  'encryption-keys': 'copy',
  // Local CA, server certificate, account and certificate by ACME.
  tls: 'copy',
  'atoll.db': 'store',
  'atoll.db-wal': 'store',
  'atoll.db-shm': 'store',
  'atoll.db-journal': 'store',
  cells: 'node',
  snapshots: 'node',
  templates: 'node',
  steps: 'node',
  layers: 'node',
  envd: 'node',
  // Belong to the processes on this machine. Another machine must not pass itself off as one of them.
  'api-id': 'leave',
  'server.pid': 'leave',
  // Certificate and key of a part of a fleet, for the same reason: a copied node joins with a token of its own.
  'fleet-identity.json': 'leave',
  // Sessions of browsers: users sign in again.
  'dashboard-sessions.json': 'leave',
  'dashboard-operators.json': 'leave',
  // Share links: a restore would bring revoked links back.
  'dashboard-shares.json': 'leave',
  // Recordings of terminals, which may be large. They are downloaded one by one.
  'dashboard-recordings': 'leave',
  // Made again when needed.
  'empty-disks': 'leave',
  prototypes: 'leave',
  'build-files': 'leave',
  // Notes about uploads: a restored node looks into the object store again.
  objects: 'leave',
  'scratch.img': 'leave',
  ballast: 'leave',
  // Logs.
  logs: 'leave',
  'sandbox-logs': 'leave',
  'egress.log': 'leave',
  // Folders of backups and restores under way.
  '.backup': 'leave',
  '.restore': 'leave',
  'lost+found': 'leave',
}

/** Returns undefined for an entry that this release does not know. Temporary files are left out. */
export function treatmentOf(name: string): Treatment | undefined {
  if (/\.[0-9a-f]{8}\.tmp$/.test(name)) return 'leave'
  return Object.hasOwn(treatments, name) ? treatments[name] : undefined
}
