/** Installs the CA certificate of the egress proxy in the sandbox, so that programs trust it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Variables } from '../domain/process/environment.ts'
import { truncate } from '../domain/sandbox/log.ts'
import type { Log } from '../domain/sandbox/log.ts'
import { caVariables } from '../domain/trust/installed-ca.ts'
import type { InstalledCa, InstalledCaStore } from '../domain/trust/installed-ca.ts'

export interface CaTrust {
  /** Environment variables for every process; `envVars` and requests may override them. */
  variables(): Variables
  /**
   * Replaces the CA that was installed before. Throws an `internal` fault if the certificate file cannot be
   * written.
   */
  install(caBundle: string): Promise<void>
}

export interface InstallResult extends InstalledCa {
  readonly problems: readonly string[]
}

export interface CaTrustDeps {
  readonly store: InstalledCaStore
  /** Never rejects, but may never settle. */
  readonly install: (caBundle: string) => Promise<InstallResult>
  readonly log: Log
  readonly timeoutMs?: number
}

export function openCaTrust(deps: CaTrustDeps): CaTrust {
  const { store, log, timeoutMs = 3000 } = deps
  let installed = store.load()
  let last = Promise.resolve()
  let running: Promise<InstallResult> | undefined
  return {
    variables: () => caVariables(installed),
    install(caBundle) {
      const done = last.then(() => apply(caBundle))
      last = done.catch(() => {})
      return done
    },
  }

  async function apply(caBundle: string): Promise<void> {
    const { problems, ...files } = await installWithTimeout(caBundle)
    for (const problem of problems) {
      const message = `Failed to install the egress CA in one place, so some programs may reject TLS servers: ${truncate(problem, 1024)}`
      log.write('warn', message, { logger: 'envd' })
    }
    installed = files
    await store.save(files)
    if (files.certificate !== undefined) return
    throw new Fault(
      'internal',
      'trust_failed',
      'Failed to write the egress CA certificate. See the sandbox log.',
    )
  }

  /**
   * A FUSE file system of a sandbox program may hang forever. It may block one installation, but not the node's
   * request.
   */
  async function installWithTimeout(caBundle: string): Promise<InstallResult> {
    if (running) return timedOut
    running = deps.install(caBundle).finally(() => (running = undefined))
    const ended = new AbortController()
    try {
      return await Promise.race([running, sleep(timeoutMs, timedOut, { signal: ended.signal })])
    } finally {
      ended.abort()
    }
  }
}

const timedOut: InstallResult = { problems: ['the file system timed out'] }
