/**
 * Private values in the network settings of a sandbox: the password of its egress proxy, and header values. They are
 * stored sealed, each in the place of its plain text. References to secrets stay readable behind a sealed header
 * value, because the store searches for them.
 */
import type { KeyRing, SealingWrite } from '@atoll/kit/encryption/key-ring'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import { secretsIn } from '../../domain/network/header-rules.ts'
import type { SandboxNetwork } from '../../domain/network/network.ts'

export function hasPrivateValues(network: SandboxNetwork | undefined): boolean {
  return network?.egressProxy?.password !== undefined || network?.rules !== undefined
}

/** Leaves values as they are that are still sealed because they could not be opened. */
export function sealNetwork(
  id: string,
  network: SandboxNetwork,
  write: SealingWrite,
): SandboxNetwork {
  return mapValues(network, (value, field) => {
    if (isSealed(value)) return value
    const names = field === passwordField ? [] : secretsIn([{ headers: { [field]: value } }])
    const references = names.map((name) => ` \${e2b.secrets.${name}}`)
    return `${write.seal(value, identityOf(id, field))}${references.join('')}`
  })
}

/** Leaves values sealed that cannot be opened: the record stays usable until something needs them. */
export function openNetwork(id: string, network: SandboxNetwork, keyRing: KeyRing): SandboxNetwork {
  return mapValues(network, (value, field) => {
    if (!isSealed(value)) return value
    try {
      return keyRing.open(sealedPart(value), identityOf(id, field))
    } catch {
      return value
    }
  })
}

export function listValues(network: SandboxNetwork): string[] {
  const values: string[] = []
  mapValues(network, (value) => (values.push(sealedPart(value)), value))
  return values
}

const passwordField = 'egressProxy.password'

function identityOf(id: string, field: string): string {
  return `sandbox:${id}:${field}`
}

/** Cuts off the references behind a sealed value. */
function sealedPart(value: string): string {
  return isSealed(value) ? (value.split(' ', 1)[0] ?? '') : value
}

function mapValues(
  network: SandboxNetwork,
  change: (value: string, field: string) => string,
): SandboxNetwork {
  const { egressProxy: proxy, rules } = network
  return {
    ...network,
    ...(proxy?.password !== undefined && {
      egressProxy: { ...proxy, password: change(proxy.password, passwordField) },
    }),
    ...(rules && { rules: mapRules(rules, change) }),
  }
}

type Rules = NonNullable<SandboxNetwork['rules']>

function mapRules(rules: Rules, change: (value: string, field: string) => string): Rules {
  const mapHeaders = (domain: string, headers: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, change(value, `${domain}:${name}`)]),
    )
  return Object.fromEntries(
    Object.entries(rules).map(([domain, list]) => [
      domain,
      list.map((rule) => {
        const { headers } = rule.transform ?? {}
        if (!headers) return rule
        return { ...rule, transform: { ...rule.transform, headers: mapHeaders(domain, headers) } }
      }),
    ]),
  )
}
