import type { Kysely } from 'kysely'
import type { SandboxNetwork } from '../../domain/network/network.ts'
import type { Schema } from '../schema.ts'

/** Adds the requested network settings as JSON; null if the creator did not specify any. */
export async function addNetwork({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('network', 'text').execute()
}

/** Adds the process that changes the network settings. */
export async function addNetworkHolder({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('network_holder', 'text').execute()
}

export function toNetworkText(network: SandboxNetwork | undefined): string | null {
  return network ? JSON.stringify(network) : null
}

export function fromNetworkText(text: string | null): SandboxNetwork | undefined {
  if (text === null) return undefined
  const network: SandboxNetwork = JSON.parse(text)
  return network
}
