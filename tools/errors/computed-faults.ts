import type { BlockLevel } from '../../apps/api/src/domain/teams/team-block.ts'
import type { Computed } from './find-faults.ts'
import { kinds } from './kinds.ts'

const blockLevels = { banned: true, blocked: true } satisfies Record<BlockLevel, true>

/** Faults whose kind or reason is computed, with all values. */
export const computedFaults: readonly Computed[] = [
  {
    path: 'apps/api/src/domain/teams/team-block.ts',
    args: "'forbidden', `team_${block.level}`",
    values: Object.keys(blockLevels).map((level) => ({
      kind: 'forbidden',
      reason: `team_${level}`,
    })),
  },
  {
    path: 'packages/client/src/connect-fault.ts',
    args: 'kind, `process_${kind}`',
    values: kinds.map((kind) => ({ kind, reason: `process_${kind}` })),
  },
  // Repeats what the server sent.
  {
    path: 'packages/client/src/http-fault.ts',
    args: 'kind, (parsed.success && parsed.data.error_code) || kind',
    values: [],
  },
  // Repeat another fault with a longer message.
  { path: 'apps/cli/src/commands/each-id.ts', args: 'first.kind, first.reason', values: [] },
  { path: 'apps/cli/src/commands/sandbox/fork.ts', args: 'first.kind, first.reason', values: [] },
]
