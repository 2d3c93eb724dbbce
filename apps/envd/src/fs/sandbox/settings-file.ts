/**
 * Keeps the settings across restarts of envd. The file contains the access token, so only root may read it. It is
 * on tmpfs, so it needs no fsync, and is written synchronously: the thread pool takes six times as long.
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
        return undefined // missing or damaged: envd rejects clients until the next /init
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

/**
 * Deletes the old settings if the new ones cannot be saved (disk full), so that they do not come back after a
 * restart.
 */
function forget(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}
