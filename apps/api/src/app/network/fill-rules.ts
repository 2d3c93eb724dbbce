import type { NetworkRules } from '@atoll/contracts/network/rules'
import { fillSecrets, toDomainHeaders, secretsIn } from '../../domain/network/header-rules.ts'
import type { HeaderRules } from '../../domain/network/header-rules.ts'
import { invalid, quote } from '../../domain/network/network-fault.ts'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import { Fault } from '@atoll/kit/fault'
import type { SecretStore } from '../../domain/secret.ts'

/** Inserts secret values into header rules just before the rules are sent to a node. */
export interface RuleFilling {
  /** Omits headers whose secret does not exist. */
  fill(teamId: string, rules: NetworkRules): Promise<NetworkRules>
  /** Throws a fault when a named secret does not exist. `field` is the name of the field in the request. */
  check(teamId: string, rules: HeaderRules | undefined, field: string): Promise<void>
}

export function createRuleFilling(secrets: Pick<SecretStore, 'values'>): RuleFilling {
  return {
    async fill(teamId, rules) {
      const { domains = [] } = rules.transforms ?? {}
      checkOpened(rules)
      const names = secretsIn(domains)
      if (names.length === 0) return rules
      const values = await secrets.values(teamId, names)
      return { ...rules, transforms: { domains: fillSecrets(domains, values) } }
    },

    async check(teamId, rules = {}, field) {
      const named = secretsIn(toDomainHeaders(rules))
      if (named.length === 0) return
      const values = await secrets.values(teamId, named)
      const missing = named.find((name) => !values.has(name))
      if (missing === undefined) return
      throw invalid(
        field,
        `there is no secret ${quote(missing)}: create it with POST /secrets first`,
      )
    },
  }
}

/** Refuses rules with a value that the store could not decrypt: the sandbox would send the encrypted text. */
function checkOpened({ proxy, transforms }: NetworkRules): void {
  const headers = transforms?.domains.flatMap((domain) => Object.values(domain.headers)) ?? []
  if (![proxy?.password ?? '', ...headers].some(isSealed)) return
  throw new Fault(
    'unavailable',
    'network_unreadable',
    'The proxy password or a header rule of the sandbox cannot be decrypted. Ask an operator to restore the encryption key, or set the network rules again.',
  )
}
