/**
 * Keeps the settings over a restart of the daemon. The file holds the access token, so only root may read it. It is in
 * memory, so that nothing needs to be synced, and written at once: by the thread pool it takes six times as long.
 */
import {
  closeSync,
  fchmodSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { applyChange, parseChange } from '../../domain/sandbox/settings.ts'
import type { Settings, SettingsStore } from '../../domain/sandbox/settings.ts'

export function settingsFile(path: string): SettingsStore {
  return {
    async load() {
      try {
        return applyChange(undefined, parseChange(JSON.parse(readFileSync(path, 'utf8'))))
      } catch {
        return undefined // missing or damaged: the daemon stays closed until the node speaks again
      }
    },
    async save(settings) {
      try {
        write(path, settings)
      } catch {
        forget(path)
      }
    },
  }
}

function write(path: string, { timestampMs, ...settings }: Settings): void {
  const timestamp = timestampMs === undefined ? undefined : new Date(timestampMs).toISOString()
  mkdirSync(dirname(path), { recursive: true })
  const fresh = `${path}.new`
  const fd = openSync(fresh, 'w', 0o600)
  try {
    fchmodSync(fd, 0o600)
    writeFileSync(fd, JSON.stringify({ ...settings, timestamp }))
  } finally {
    closeSync(fd)
  }
  renameSync(fresh, path)
}

/** When the new settings cannot be kept (there is no room), the old ones must not come back after a restart. */
function forget(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}
