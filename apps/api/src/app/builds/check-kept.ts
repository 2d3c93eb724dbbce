import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { mayKeep, tooMuchKept } from '../../domain/teams/limits.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { TemplateBytes } from './template-bytes.ts'

/** Throws a fault when a team has used up its disk quota. A build under way counts with what the node has of it. */
export function createCheckKept(ports: {
  readonly sandboxes: Pick<SandboxStore, 'keptBytes'>
  readonly templateBytes: TemplateBytes
  readonly limitsOf: LimitsOf
}): (teamId: string) => Promise<void> {
  const { sandboxes, templateBytes, limitsOf } = ports
  return async (teamId) => {
    const [limits, kept, templates] = await Promise.all([
      limitsOf(teamId),
      sandboxes.keptBytes(teamId),
      templateBytes(teamId),
    ])
    const used = kept + templates
    if (!mayKeep(limits, used, 1)) throw tooMuchKept(limits, used)
  }
}
