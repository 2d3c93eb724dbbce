import { isDomainName, normalizeName } from '@atoll/kit/domain-name'

/**
 * Normalizes a domain name for comparison. Rejects names that a resolver would read as an IP address, so that an
 * allowed name cannot stand for an address that is not allowed.
 */
export function toDnsName(text: string): string | undefined {
  return isDomainName(text) ? normalizeName(text) : undefined
}
