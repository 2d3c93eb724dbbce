import type { ListedSandbox, Template } from '@atoll/client/replies'
import { secondsUntil } from './format.ts'

type BuiltTemplate = Pick<Template, 'templateID' | 'names' | 'buildStatus'>

export type Attention =
  | { readonly kind: 'expiring'; readonly sandbox: ListedSandbox; readonly secondsLeft: number }
  | { readonly kind: 'memory'; readonly sandbox: ListedSandbox; readonly share: number }
  | { readonly kind: 'died'; readonly sandbox: ListedSandbox; readonly reason: string }
  | { readonly kind: 'denied'; readonly connection: DeniedConnection }
  | { readonly kind: 'build'; readonly template: BuiltTemplate }

/** A destination that a running sandbox could not reach. */
export interface DeniedConnection {
  readonly sandboxID: string
  readonly name?: string
  readonly address?: string
  readonly port: number
  readonly count: number
  readonly lastAt: string
}

const expiringSeconds = 120
const highMemoryShare = 0.9
const diedWithinMs = 60 * 60 * 1000
/** Reasons of a kill by a client and of the timeout. Every other reason needs attention. */
const wantedEnds: ReadonlySet<string> = new Set(['was killed', 'reached the end of its timeout'])

/** Returns what needs attention, most urgent first. */
export function findAttention(facts: {
  /** Running sandboxes that end first. */
  readonly ending: readonly ListedSandbox[]
  /** Running sandboxes that use most memory. */
  readonly largest: readonly ListedSandbox[]
  readonly templates: readonly BuiltTemplate[]
  readonly memory: Readonly<
    Record<string, { readonly memUsed: number; readonly memTotal: number } | undefined>
  >
  /** Newest ended sandboxes. */
  readonly ended: readonly ListedSandbox[]
  readonly denied: readonly DeniedConnection[]
  readonly now: number
}): Attention[] {
  const full = facts.largest.flatMap((sandbox): Attention[] => {
    const usage = facts.memory[sandbox.sandboxID]
    const share = usage ? usage.memUsed / (usage.memTotal || 1) : 0
    return share >= highMemoryShare ? [{ kind: 'memory', sandbox, share }] : []
  })
  const expiring = facts.ending
    .map((sandbox) => ({
      kind: 'expiring' as const,
      sandbox,
      secondsLeft: secondsUntil(sandbox.endAt, facts.now),
    }))
    .filter(({ secondsLeft }) => secondsLeft <= expiringSeconds)
    .toSorted((a, b) => a.secondsLeft - b.secondsLeft)
  const failed = facts.templates
    .filter(({ buildStatus }) => buildStatus === 'error')
    .map((template) => ({ kind: 'build' as const, template }))
  const died = facts.ended.flatMap((sandbox): Attention[] => {
    const { endReason: reason = '', endedAt = '' } = sandbox
    const isRecent = facts.now - Date.parse(endedAt) <= diedWithinMs
    return isRecent && reason !== '' && !wantedEnds.has(reason)
      ? [{ kind: 'died', sandbox, reason }]
      : []
  })
  const denied = facts.denied.map((connection) => ({ kind: 'denied' as const, connection }))
  return [...died, ...full, ...expiring, ...failed, ...denied]
}
