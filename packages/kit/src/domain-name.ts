/**
 * Domain names as in DNS (RFC 1035, section 2.3.4), plus the underscore of service names. Single labels are rejected,
 * since they have a meaning only on a local network.
 */

const longestName = 253
const label = /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/

/**
 * A last label of this form makes programs read the name as an IPv4 address: `1.2.3` is 1.2.0.3 (WHATWG URL, "ends in a
 * number").
 */
const number = /^(\d+|0[xX][0-9a-fA-F]*)$/

/** Accepts upper and lower case, and a trailing dot. */
export function isDomainName(text: string): boolean {
  const labels = withoutDot(text).split('.')
  return (
    withoutDot(text).length <= longestName &&
    labels.length >= 2 &&
    labels.every((part) => label.test(part)) &&
    !number.test(labels.at(-1) ?? '')
  )
}

/** Accepts a name, or `*.` and a name for all its subdomains. */
export function isDomainPattern(text: string): boolean {
  if (!text.startsWith('*.')) return isDomainName(text)
  return withoutDot(text).length <= longestName && isDomainName(text.slice(2))
}

/** Also accepts wildcards below a single label, such as `*.com`. */
export function isBroadPattern(text: string): boolean {
  return isDomainPattern(text.startsWith('*.') ? `*.any${text.slice(1)}` : text)
}

/** Normalizes a valid name or pattern: lower case, no trailing dot. */
export function normalizeName(text: string): string {
  return withoutDot(text).toLowerCase()
}

function withoutDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text
}
