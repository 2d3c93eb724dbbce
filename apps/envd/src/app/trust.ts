/** Makes the programs of the sandbox trust an authority, by which the egress certifies itself to them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Variables } from '../domain/process/environment.ts'
import { cut } from '../domain/sandbox/log.ts'
import type { Log } from '../domain/sandbox/log.ts'
import { trustVariables } from '../domain/trust/trust.ts'
import type { Trusted, TrustStore } from '../domain/trust/trust.ts'

export interface Trust {
  /** For every process, unless somebody sets them to something else. */
  variables(): Variables
  /** In place of an authority that was given before. Throws an `internal` fault when its file could not be written. */
  install(caBundle: string): Promise<void>
}

export interface Installation extends Trusted {
  readonly problems: readonly string[]
}

export interface TrustPorts {
  readonly store: TrustStore
  /** Never fails, but need not end. */
  readonly install: (caBundle: string) => Promise<Installation>
  readonly log: Log
  readonly limitMs?: number
}

export function openTrust(ports: TrustPorts): Trust {
  const { store, log, limitMs = 3000 } = ports
  let trusted = store.load()
  let last = Promise.resolve()
  let running: Promise<Installation> | undefined
  return {
    variables: () => trustVariables(trusted),
    install(caBundle) {
      const done = last.then(() => apply(caBundle))
      last = done.catch(() => {})
      return done
    },
  }

  async function apply(caBundle: string): Promise<void> {
    const { problems, ...files } = await attempt(caBundle)
    for (const problem of problems) {
      const message = `The authority of the egress is not trusted everywhere: ${cut(problem, 1024)}`
      log.write('warn', message, { logger: 'envd' })
    }
    trusted = files
    await store.save(files)
    if (files.certificate !== undefined) return
    throw new Fault('internal', 'trust_failed', 'The certificates could not be written')
  }

  /** A file system made by a program of the sandbox need never answer. It may hold one call of ours, but not the node's. */
  async function attempt(caBundle: string): Promise<Installation> {
    if (running) return unanswered
    running = ports.install(caBundle).finally(() => (running = undefined))
    const ended = new AbortController()
    try {
      return await Promise.race([running, sleep(limitMs, unanswered, { signal: ended.signal })])
    } finally {
      ended.abort()
    }
  }
}

const unanswered: Installation = { problems: ['the file system does not answer'] }
