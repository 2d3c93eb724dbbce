import { Fault } from '@atoll/kit/fault'

const pairLimit = 64

/**
 * Parses the metadata filter. Clients percent-encode keys and values, form-encode the whole, and encode the result as a
 * query value. The framework has already undone the last step.
 */
export function parseMetadataQuery(text: string | undefined): Record<string, string> | undefined {
  if (!text) return undefined
  const pairs = decode(text.replaceAll('+', ' ')).split('&')
  if (pairs.length > pairLimit) throw malformed(`at most ${pairLimit} pairs are accepted`)
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key, value, ...more] = pair.split('=')
      if (key === undefined || value === undefined || more.length > 0) {
        throw malformed('each pair must be key=value')
      }
      return [decode(key), decode(value)]
    }),
  )
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    throw malformed('its percent-encoding is broken', error)
  }
}

function malformed(what: string, cause?: unknown): Fault {
  return new Fault(
    'invalid',
    'invalid_metadata_query',
    `query.metadata: ${what}; write key=value&… with keys and values percent-encoded`,
    { cause },
  )
}
