import { keyCalls } from './platform/keys.ts'
import type { KeyCalls } from './platform/keys.ts'
import { sandboxCalls } from './platform/sandboxes.ts'
import type { SandboxCalls } from './platform/sandboxes.ts'
import { snapshotCalls } from './platform/snapshots.ts'
import type { SnapshotCalls } from './platform/snapshots.ts'
import { exchange } from './request.ts'
import type { Call, PlatformOptions } from './request.ts'

/** The platform API as our own programs use it. Every failure is a `Fault` whose kind comes from the status. */
export interface PlatformClient extends SandboxCalls, SnapshotCalls, KeyCalls {
  /** Resolves when the server answers that it is well. */
  health(call?: Call): Promise<void>
}

export function createPlatformClient(options: PlatformOptions): PlatformClient {
  return {
    async health(call) {
      await exchange(options, { method: 'GET', path: '/health', ...call })
    },
    ...sandboxCalls(options),
    ...snapshotCalls(options),
    ...keyCalls(options),
  }
}
