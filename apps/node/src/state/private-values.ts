/** Private values in the records of cells and snapshots: keys of certificate authorities, proxy passwords, headers. */
import type { Authority, NetworkRules } from '@atoll/contracts/network/rules'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { Snapshot } from '../domain/sandboxes/snapshot.ts'
import type { PrivateValues, RecordKeys } from './record-file.ts'

/** Outcome of sealing the records of one kind again. */
export interface RecordReseal {
  readonly resealed: number
  /** Quarantined records. They may hold values with any key. */
  readonly unreadable: number
}

/** Keys of commands that only read records: private values are left out, and records with such values cannot be written. */
export const noKeys: RecordKeys = {
  open: () => '',
  isStale: () => false,
  beginWrite: () => ({ seal: refuseToSeal, [Symbol.dispose]() {} }),
}

function refuseToSeal(): never {
  throw new Error('a record with private values cannot be written without the encryption keys')
}

/** Version of records with sealed values. Version 1 has them in plain text. */
const since = 2

/** The step from version 1 to 2 changes no field: values are sealed when a record is written. */
export const upgrades = [<Fields>(record: Fields): Fields => record]

type Change = (value: string, field: string) => string

export function cellValues(keys: RecordKeys): PrivateValues<CellRecord> {
  return {
    ...{ since, keys },
    identityOf: ({ cellId }) => `cell:${cellId}`,
    map(record, change) {
      const { owner } = record
      if (!owner || (!owner.authority && !isPrivate(owner.network))) return record
      const { authority, network } = owner
      return {
        ...record,
        owner: {
          ...owner,
          ...(authority && { authority: mapAuthority(authority, 'authority', change) }),
          ...(network && { network: mapNetwork(network, change) }),
        },
      }
    },
  }
}

export function snapshotValues(keys: RecordKeys): PrivateValues<Snapshot> {
  return {
    ...{ since, keys },
    identityOf: ({ snapshotId }) => `snapshot:${snapshotId}`,
    map(record, change) {
      const { authority } = record
      if (!authority) return record
      return { ...record, authority: mapAuthority(authority, 'authority', change) }
    },
  }
}

function isPrivate(network: NetworkRules | undefined): boolean {
  if (!network) return false
  const { proxy, transforms } = network
  return proxy?.password !== undefined || transforms !== undefined
}

function mapNetwork(network: NetworkRules, change: Change): NetworkRules {
  const { proxy, transforms } = network
  return {
    ...network,
    ...(proxy?.password !== undefined && {
      proxy: { ...proxy, password: change(proxy.password, 'proxy.password') },
    }),
    ...(transforms && { transforms: mapTransforms(transforms, change) }),
  }
}

type Transforms = NonNullable<NetworkRules['transforms']>

function mapTransforms({ domains, authority }: Transforms, change: Change): Transforms {
  return {
    domains: domains.map(({ pattern, headers }) => ({
      pattern,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, change(value, `${pattern}:${name}`)]),
      ),
    })),
    ...(authority && { authority: mapAuthority(authority, 'transforms.authority', change) }),
  }
}

function mapAuthority({ certificate, key }: Authority, field: string, change: Change): Authority {
  return { certificate, key: change(key, `${field}.key`) }
}
