/** Version of the internal protocol between the parts of a fleet. Raise it with each incompatible change. */
export const protocolVersion = 1
/** Oldest version that this release understands: parts of the release before keep working during an upgrade. */
export const oldestProtocol = 1
/** Header of every internal call. */
export const protocolHeader = 'atoll-protocol'

/** Parts of a fleet. The certificate of a member names its role, which decides what it may call. */
export const roles = ['api', 'edge', 'node'] as const
export type Role = (typeof roles)[number]

/** Begins every join token. */
export const joinTokenPrefix = 'atoll_join_'
