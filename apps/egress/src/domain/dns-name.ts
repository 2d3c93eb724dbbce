import { isDomainName, plainName } from '@atoll/kit/domain-name'

/**
 * The one form in which names are compared here. Names that a resolver would read as an address are none, so that an
 * approved name cannot stand for an address that nobody approved.
 */
export function toDnsName(text: string): string | undefined {
  return isDomainName(text) ? plainName(text) : undefined
}
