import type { Logger } from '@atoll/kit/log'
import { toDomainHeaders, secretsIn } from '../../domain/network/header-rules.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { NetworkChanges } from '../network/network.ts'

/**
 * Creates a function that updates the rules of running sandboxes on their nodes after a secret changed or was deleted.
 */
export function createRefreshSecrets(ports: {
  readonly store: Pick<SandboxStore, 'listWithSecrets'>
  readonly changes: Pick<NetworkChanges, 'repeat'>
  readonly log: Logger
}): (teamId: string, name: string) => Promise<void> {
  const { store, changes, log } = ports
  return async (teamId, name) => {
    for (const { id, network } of await store.listWithSecrets(teamId)) {
      if (!secretsIn(toDomainHeaders(network.rules ?? {})).includes(name)) continue
      // Continue with the other sandboxes; the reconciler retries this one until it succeeds.
      await changes.repeat(id).catch((err: unknown) => {
        log.warn(
          { err, sandboxId: id },
          'a changed secret could not be sent to a sandbox; the next pass tries again',
        )
      })
    }
  }
}
