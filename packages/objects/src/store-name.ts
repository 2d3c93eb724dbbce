import { createHash } from 'node:crypto'
import type { ObjectSettings } from './settings.ts'

type Place = Pick<ObjectSettings, 'endpoint' | 'region' | 'bucket' | 'prefix'>

/**
 * Name of the place where objects are kept, for the folder of the notes about it. All spellings of one endpoint give the same
 * name.
 */
export function nameOfStore(place: Place): string {
  const { endpoint } = place
  const address = endpoint === undefined ? '' : normalizeEndpoint(endpoint)
  const isDefault = defaultEndpoints(place.region).includes(address)
  return hash({ ...place, endpoint: isDefault ? '' : address })
}

/** Name that the first releases with an object store gave to the same place. It depends on the spelling. */
export function earlierNameOfStore(place: Place): string {
  return hash(place)
}

/** The host in lower case, without a default port, a final dot or slashes at the end. */
function normalizeEndpoint(endpoint: string): string {
  const { protocol, hostname, port, pathname } = new URL(endpoint)
  const host = `${hostname.replace(/\.$/, '')}${port === '' ? '' : `:${port}`}`
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}`
}

/** Endpoints that the S3 client uses by itself. */
function defaultEndpoints(region: string): readonly string[] {
  const own = `https://s3.${region}.amazonaws.com`
  return region === 'us-east-1' ? [own, 'https://s3.amazonaws.com'] : [own]
}

function hash({ endpoint = '', region, bucket, prefix }: Place): string {
  const place = JSON.stringify([endpoint, region, bucket, prefix])
  return createHash('sha256').update(place).digest('hex').slice(0, 16)
}
