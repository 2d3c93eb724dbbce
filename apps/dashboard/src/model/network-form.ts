import type { SandboxDetail } from '@atoll/client/replies'
import { parseEntries } from './pairs.ts'

export interface NetworkForm {
  readonly mode: 'all' | 'some' | 'none'
  readonly allowed: string
  readonly denied: string
  readonly proxy: string
}

type Network = NonNullable<SandboxDetail['network']>

const everything = '0.0.0.0/0'

export function toNetworkForm(network: Network | undefined): NetworkForm {
  const allowed = network?.allowOut ?? []
  const denied = network?.denyOut ?? []
  const deniesAll = denied.includes(everything)
  return {
    mode: !deniesAll ? 'all' : allowed.length > 0 ? 'some' : 'none',
    allowed: allowed.join('\n'),
    denied: denied.filter((entry) => entry !== everything).join('\n'),
    proxy: network?.egressProxy?.address ?? '',
  }
}

/** Returns the body of `PUT /sandboxes/{id}/network`, which replaces all rules. */
export function toNetworkUpdate(form: NetworkForm) {
  const denied = parseEntries(form.denied)
  const allowed = form.mode === 'none' ? [] : parseEntries(form.allowed)
  const proxy = form.proxy.trim()
  return {
    allowOut: allowed,
    denyOut: form.mode === 'all' ? denied : [everything, ...denied],
    ...(proxy && { egressProxy: { address: proxy } }),
  }
}

/** Returns the body of the same request that allows one more name, and keeps all other rules. */
export function toUpdateWithName(network: Network | undefined, name: string) {
  const form = toNetworkForm(network)
  const allowed = [...parseEntries(form.allowed), name]
  const mode = form.mode === 'none' ? 'some' : form.mode
  return toNetworkUpdate({ ...form, mode, allowed: [...new Set(allowed)].join('\n') })
}

/**
 * Names what the form cannot keep, because the server never returns it. Saving would remove it, so the form is not
 * offered then.
 */
export function findHiddenParts(network: Network | undefined): string | undefined {
  if (Object.keys(network?.rules ?? {}).length > 0) return 'header rules'
  if (network?.egressProxy?.username) return 'the password of its proxy'
  return undefined
}
