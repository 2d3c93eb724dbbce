import { catalogueCalls } from './platform/catalogue.ts'
import type { CatalogueCalls } from './platform/catalogue.ts'
import { keyCalls } from './platform/keys.ts'
import type { KeyCalls } from './platform/keys.ts'
import { sandboxCalls } from './platform/sandboxes.ts'
import type { SandboxCalls } from './platform/sandboxes.ts'
import { snapshotCalls } from './platform/snapshots.ts'
import type { SnapshotCalls } from './platform/snapshots.ts'
import { sendRequest } from './platform/request.ts'
import type { CallOptions, PlatformOptions } from './platform/request.ts'

/**
 * Client of the platform API for our own programs. Every failure is a `Fault` whose kind derives from the HTTP status.
 */
export interface PlatformClient extends SandboxCalls, SnapshotCalls, CatalogueCalls, KeyCalls {
  /** Resolves if the server reports that it is healthy. */
  health(call?: CallOptions): Promise<void>
}

export function createPlatformClient(options: PlatformOptions): PlatformClient {
  return {
    async health(call) {
      await sendRequest(options, { method: 'GET', path: '/health', ...call })
    },
    ...sandboxCalls(options),
    ...snapshotCalls(options),
    ...catalogueCalls(options),
    ...keyCalls(options),
  }
}
