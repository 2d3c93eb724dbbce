/**
 * Keeps the paths of the installed CA across restarts of envd. Separate from the settings, because the CA may
 * arrive first.
 */
import { readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { InstalledCaStore } from '../../domain/trust/installed-ca.ts'
import { replaceFile } from '../files/replace-atomically.ts'

export function installedCaFile(path: string): InstalledCaStore {
  return {
    load() {
      try {
        const { certificate, bundle } = JSON.parse(readFileSync(path, 'utf8'))
        return { certificate: text(certificate), bundle: text(bundle) }
      } catch {
        return {}
      }
    },
    async save(installed) {
      try {
        await mkdir(dirname(path), { recursive: true })
        await replaceFile(path, JSON.stringify(installed))
      } catch {
        await rm(path, { force: true }).catch(() => {})
      }
    },
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
