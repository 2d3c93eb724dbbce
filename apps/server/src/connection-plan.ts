/**
 * Divides the file descriptors of the process between clients, connections to sandboxes, and the server itself: store,
 * log, commands and sandbox checks. A request to a sandbox takes one descriptor on each side, so both sides get the
 * same number.
 */
import { Fault } from '@atoll/kit/fault'
import type { ConnectionLimits } from './connections.ts'

export interface ConnectionPlan extends ConnectionLimits {
  /** Limit on open requests and WebSockets to all sandboxes. */
  readonly mostRequests: number
  readonly mostRequestsPerSandbox: number
}

export interface PlanSettings {
  readonly mostConnections?: number | undefined
  readonly mostPerClient?: number | undefined
  readonly mostRequestsPerSandbox?: number | undefined
}

/** Default limit. Request headers take up to 16 KiB per connection, so more connections need an operator's decision. */
const usualMost = 16_384
const usualLeast = 64
const reservedShare = 1 / 8
const reservedLeast = 256

export function planConnections(descriptorLimit: number, settings: PlanSettings): ConnectionPlan {
  const reserved = Math.max(reservedLeast, Math.ceil(descriptorLimit * reservedShare))
  const affordable = Math.floor((descriptorLimit - reserved) / 2)
  const usual = Math.min(Math.max(affordable, usualLeast), usualMost)
  const { mostConnections = usual } = settings
  if (mostConnections > affordable) throw tooFew(descriptorLimit, mostConnections)
  return {
    mostConnections,
    mostPerClient: settings.mostPerClient ?? Math.ceil(mostConnections / 8),
    mostRequests: mostConnections,
    mostRequestsPerSandbox: settings.mostRequestsPerSandbox ?? Math.ceil(mostConnections / 4),
  }
}

function tooFew(descriptorLimit: number, mostConnections: number): Fault {
  const withLeast = 2 * mostConnections + reservedLeast
  const withShare = Math.ceil((2 * mostConnections) / (1 - reservedShare)) + 1
  const message =
    `${mostConnections} connections need ${Math.max(withLeast, withShare)} open files, but this process may have only ` +
    `${descriptorLimit}. Raise that limit (ulimit -n, or LimitNOFILE in systemd), or lower ATOLL_MAX_CONNECTIONS`
  return new Fault('invalid', 'too_few_descriptors', message)
}
