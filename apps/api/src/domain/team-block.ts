import { Fault } from '@atoll/kit/fault'

/** What an operator has taken away from a team, and why. Its sandboxes go on until somebody ends them. */
export interface TeamBlock {
  readonly level: BlockLevel
  /** Shown to the team. */
  readonly reason: string
  readonly since: Date
}

/** A blocked team may still look at what it has and clean it up; a banned one may do nothing. */
export type BlockLevel = 'blocked' | 'banned'

/** The operation that somebody asks for. */
export interface Asked {
  readonly id: string
  readonly method: string
  readonly path: string
}

export function checkStanding(
  team: { readonly block?: TeamBlock | undefined } | undefined,
  asked: Asked,
): void {
  const block = team?.block
  if (!block || (block.level === 'blocked' && looksOrCleansUp(asked))) return
  const still = block.level === 'blocked' ? ' It may still list, read and delete what it has.' : ''
  throw new Fault(
    'forbidden',
    `team_${block.level}`,
    `The team is ${block.level}: ${block.reason}.${still}`,
  )
}

/** Reads that hand out a way to write. */
const writingReads = ['/templates/{templateID}/files/{hash}']

function looksOrCleansUp({ method, path }: Asked): boolean {
  return method === 'DELETE' || (method === 'GET' && !writingReads.includes(path))
}
