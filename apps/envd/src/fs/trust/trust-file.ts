/** Keeps what is trusted over a restart of the daemon, beside the settings: it may be told before them. */
import { readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { TrustStore } from '../../domain/trust/trust.ts'
import { replaceFile } from '../files/replace-entry.ts'

export function trustFile(path: string): TrustStore {
  return {
    load() {
      try {
        const { certificate, bundle } = JSON.parse(readFileSync(path, 'utf8'))
        return { certificate: text(certificate), bundle: text(bundle) }
      } catch {
        return {}
      }
    },
    async save(trusted) {
      try {
        await mkdir(dirname(path), { recursive: true })
        await replaceFile(path, JSON.stringify(trusted))
      } catch {
        await rm(path, { force: true }).catch(() => {})
      }
    },
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
