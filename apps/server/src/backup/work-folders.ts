import { join } from 'node:path'

/** Folder of all captures of a data directory. Every start of the server removes it. */
export function captureFolder(dataDir: string): string {
  return join(dataDir, '.backup')
}

/** Folder of a restore under way. The server refuses a data directory that has one. */
export function restoreFolder(dataDir: string): string {
  return join(dataDir, '.restore')
}
