import { startLoop } from '../app/loop.ts'
import { createRuleFilling } from '../app/network/fill-rules.ts'
import type { RuleFilling } from '../app/network/fill-rules.ts'
import { createNetworkChanges } from '../app/network/network.ts'
import type { NetworkChanges } from '../app/network/network.ts'
import { settleNetworks } from '../app/network/settle-networks.ts'
import { createRefreshSecrets } from '../app/secrets/refresh-secrets.ts'
import { createSecrets } from '../app/secrets/secrets.ts'
import type { Secrets } from '../app/secrets/secrets.ts'
import type { Core } from './core.ts'

/** Network rules of sandboxes, and the secrets in them. */
export interface Network {
  readonly rules: RuleFilling
  readonly changes: NetworkChanges
  readonly secrets: Secrets
  close(): Promise<void>
}

export function startNetwork(core: Core): Network {
  const { stores, fleet, clock, log, processId } = core
  const { sandboxes: store, leases } = stores
  const rules = createRuleFilling(stores.secrets)
  const changes = createNetworkChanges({ store, fleet, rules, processId, log })
  const onChanged = createRefreshSecrets({ store, changes, log })
  const loop = startLoop(
    'settle networks',
    () => settleNetworks({ store, changes, leases, clock, processId, log }),
    log,
  )
  return {
    rules,
    changes,
    secrets: createSecrets({ store: stores.secrets, onChanged, clock }),
    close: () => loop.close(),
  }
}
