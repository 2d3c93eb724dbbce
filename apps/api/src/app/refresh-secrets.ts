import type { Logger } from '@atoll/kit/log'
import { plainHeaderRules, secretsIn } from '../domain/header-rules.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { NetworkChanges } from './network.ts'

/** Tells the nodes of running sandboxes that a secret which their rules name is another, or is there no more. */
export function createRefreshSecrets(ports: {
  readonly store: Pick<SandboxStore, 'listWithSecrets'>
  readonly changes: Pick<NetworkChanges, 'repeat'>
  readonly log: Logger
}): (teamId: string, name: string) => Promise<void> {
  const { store, changes, log } = ports
  return async (teamId, name) => {
    for (const { id, network } of await store.listWithSecrets(teamId)) {
      if (!secretsIn(plainHeaderRules(network.rules ?? {})).includes(name)) continue
      // What goes wrong with one is no reason not to tell the others, and is repeated until it succeeds.
      await changes.repeat(id).catch((err: unknown) => {
        log.warn({ err, sandboxId: id }, 'a sandbox has not heard of a changed secret yet')
      })
    }
  }
}
