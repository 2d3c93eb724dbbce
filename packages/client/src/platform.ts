import { buildCalls } from './platform/builds.ts'
import type { BuildCalls } from './platform/builds.ts'
import { catalogueCalls } from './platform/catalogue.ts'
import type { CatalogueCalls } from './platform/catalogue.ts'
import { inspectionCalls } from './platform/inspections.ts'
import type { InspectionCalls } from './platform/inspections.ts'
import { keyCalls } from './platform/keys.ts'
import type { KeyCalls } from './platform/keys.ts'
import { encryptionCalls } from './platform/encryption.ts'
import type { EncryptionCalls } from './platform/encryption.ts'
import { nodeCalls } from './platform/nodes.ts'
import type { NodeCalls } from './platform/nodes.ts'
import { observationCalls } from './platform/observations.ts'
import type { ObservationCalls } from './platform/observations.ts'
import { sandboxCalls } from './platform/sandboxes.ts'
import type { SandboxCalls } from './platform/sandboxes.ts'
import { secretCalls } from './platform/secrets.ts'
import type { SecretCalls } from './platform/secrets.ts'
import { snapshotCalls } from './platform/snapshots.ts'
import type { SnapshotCalls } from './platform/snapshots.ts'
import { templateCalls } from './platform/templates.ts'
import type { TemplateCalls } from './platform/templates.ts'
import { sendRequest } from './platform/request.ts'
import type { CallOptions, PlatformOptions } from './platform/request.ts'

/**
 * Client of the platform API for our own programs. Every failure is a `Fault` whose kind derives from the HTTP status.
 */
export interface PlatformClient
  extends
    SandboxCalls,
    ObservationCalls,
    InspectionCalls,
    SnapshotCalls,
    TemplateCalls,
    BuildCalls,
    CatalogueCalls,
    SecretCalls,
    KeyCalls,
    NodeCalls,
    EncryptionCalls {
  /** Resolves if the server reports that it is healthy. */
  health(call?: CallOptions): Promise<void>
}

export function createPlatformClient(options: PlatformOptions): PlatformClient {
  return {
    async health(call) {
      await sendRequest(options, { method: 'GET', path: '/health', ...call })
    },
    ...sandboxCalls(options),
    ...observationCalls(options),
    ...inspectionCalls(options),
    ...snapshotCalls(options),
    ...templateCalls(options),
    ...buildCalls(options),
    ...catalogueCalls(options),
    ...secretCalls(options),
    ...keyCalls(options),
    ...nodeCalls(options),
    ...encryptionCalls(options),
  }
}
