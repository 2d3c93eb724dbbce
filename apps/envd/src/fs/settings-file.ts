/** Keeps the settings over a restart of the daemon. The file holds the access token, so only root may read it. */
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { applyChange, parseChange } from '../domain/settings.ts'
import type { Settings, SettingsStore } from '../domain/settings.ts'

export function settingsFile(path: string): SettingsStore {
  return {
    async load() {
      try {
        return applyChange(undefined, parseChange(JSON.parse(await readFile(path, 'utf8'))))
      } catch {
        return undefined // missing or damaged: the daemon stays closed until the node speaks again
      }
    },
    async save(settings) {
      // When the new settings cannot be kept (the disk is full), the old ones must not come back after a restart.
      await write(path, settings).catch(() => rm(path, { force: true }).catch(() => {}))
    },
  }
}

async function write(path: string, { timestampMs, ...settings }: Settings): Promise<void> {
  const timestamp = timestampMs === undefined ? undefined : new Date(timestampMs).toISOString()
  await mkdir(dirname(path), { recursive: true })
  const fresh = `${path}.new`
  {
    await using file = await open(fresh, 'w', 0o600)
    await file.chmod(0o600)
    await file.writeFile(JSON.stringify({ ...settings, timestamp }))
    await file.sync()
  }
  await rename(fresh, path)
}
