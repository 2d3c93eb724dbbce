/**
 * Names of hosts, as DNS carries them (RFC 1035, section 2.3.4) and with the underscore that names of services have.
 * Only names of two labels or more: a single one means something on a local network alone.
 */

const longestName = 253
const label = /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/

/** Programs read what ends so as an address, as `1.2.3` for 1.2.0.3 (WHATWG URL, "ends in a number"). */
const number = /^(\d+|0[xX][0-9a-fA-F]*)$/

/** In any case, and perhaps with the dot that ends a full name. */
export function isDomainName(text: string): boolean {
  const labels = withoutDot(text).split('.')
  return (
    withoutDot(text).length <= longestName &&
    labels.length >= 2 &&
    labels.every((part) => label.test(part)) &&
    !number.test(labels.at(-1) ?? '')
  )
}

/** A name, or `*.` and a name for all that is below it. */
export function isDomainPattern(text: string): boolean {
  if (!text.startsWith('*.')) return isDomainName(text)
  return withoutDot(text).length <= longestName && isDomainName(text.slice(2))
}

/** The same, with all that is below a single label too, as `*.com`. */
export function isBroadPattern(text: string): boolean {
  return isDomainPattern(text.startsWith('*.') ? `*.any${text.slice(1)}` : text)
}

/** The one way to write it, for what is a name or a pattern. */
export function plainName(text: string): string {
  return withoutDot(text).toLowerCase()
}

function withoutDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text
}
