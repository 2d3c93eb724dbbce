import { Fault } from '@atoll/kit/fault'

/** Block of a team by an operator. Running sandboxes of the team keep running. */
export interface TeamBlock {
  readonly level: BlockLevel
  /** Shown to the team. */
  readonly reason: string
  readonly since: Date
}

/** A blocked team may still read and delete. A banned team may do nothing. */
export type BlockLevel = 'blocked' | 'banned'

/** Requested API operation. */
export interface RequestedOperation {
  readonly id: string
  readonly method: string
  readonly path: string
}

export function checkNotBlocked(
  team: { readonly block?: TeamBlock | undefined } | undefined,
  asked: RequestedOperation,
): void {
  const block = team?.block
  if (!block || (block.level === 'blocked' && isReadOrDelete(asked))) return
  const still = block.level === 'blocked' ? ' It may still list, read and delete what it has.' : ''
  throw new Fault(
    'forbidden',
    `team_${block.level}`,
    `The team is ${block.level}: ${block.reason}.${still}`,
  )
}

/** GET operations that return upload URLs. */
const writingReads = ['/templates/{templateID}/files/{hash}']

function isReadOrDelete({ method, path }: RequestedOperation): boolean {
  return method === 'DELETE' || (method === 'GET' && !writingReads.includes(path))
}
