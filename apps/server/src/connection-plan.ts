/**
 * Divides the file descriptors of the process between clients, connections to sandboxes, and the server itself: store,
 * log, commands and sandbox checks. A request to a sandbox takes one descriptor on each side, so both sides get the
 * same number.
 */
import { Fault } from '@atoll/kit/fault'
import type { ConnectionLimits } from './connections.ts'

export interface ConnectionPlan extends ConnectionLimits {
  /** Limit on open requests and WebSockets to all sandboxes. */
  readonly maxRequests: number
  readonly maxRequestsPerSandbox: number
}

export interface PlanSettings {
  readonly maxConnections?: number | undefined
  readonly maxPerClient?: number | undefined
  readonly maxRequestsPerSandbox?: number | undefined
  /** True if clients may use TLS, which takes three times the memory per connection. */
  readonly isTls?: boolean
}

/** Default limit. Request headers take up to 16 KiB per connection, so more connections need an operator's decision. */
const usualMost = 16_384
const usualMostWithTls = 5_000
const usualLeast = 64
const reservedShare = 1 / 8
const reservedLeast = 256

export function planConnections(descriptorLimit: number, settings: PlanSettings): ConnectionPlan {
  const reserved = Math.max(reservedLeast, Math.ceil(descriptorLimit * reservedShare))
  const affordable = Math.floor((descriptorLimit - reserved) / 2)
  const ceiling = settings.isTls ? usualMostWithTls : usualMost
  const usual = Math.min(Math.max(affordable, usualLeast), ceiling)
  const { maxConnections = usual } = settings
  if (maxConnections > affordable) throw tooFew(descriptorLimit, maxConnections)
  return {
    maxConnections,
    maxPerClient: settings.maxPerClient ?? Math.ceil(maxConnections / 8),
    maxRequests: maxConnections,
    maxRequestsPerSandbox: settings.maxRequestsPerSandbox ?? Math.ceil(maxConnections / 4),
  }
}

function tooFew(descriptorLimit: number, maxConnections: number): Fault {
  const withLeast = 2 * maxConnections + reservedLeast
  const withShare = Math.ceil((2 * maxConnections) / (1 - reservedShare)) + 1
  const message =
    `${maxConnections} connections need ${Math.max(withLeast, withShare)} open files, but this process may have only ` +
    `${descriptorLimit}. Raise that limit (ulimit -n, or LimitNOFILE in systemd), or lower ATOLL_MAX_CONNECTIONS`
  return new Fault('invalid', 'too_few_descriptors', message)
}
