import { join } from 'node:path'
import { toInstallation } from '@atoll/node/domain/host/installation'

/** Returns the path of the socket for backups. `dataDir` must be a real path. */
export function backupSocketPath(dataDir: string): string {
  return join(toInstallation(dataDir).runDir, 'backup.sock')
}
