import type { Sandbox } from './sandbox.ts'

/** Sandbox in a family tree. */
export type Relative = Pick<
  Sandbox,
  | 'id'
  | 'teamId'
  | 'templateId'
  | 'buildId'
  | 'alias'
  | 'state'
  | 'parent'
  | 'createdAt'
  | 'endedAt'
  | 'endReason'
>

export interface LineageStore {
  /** Includes ended sandboxes as long as their records are kept. */
  find(teamId: string, id: string): Promise<Relative | undefined>
  /** Lists copies of these sandboxes, oldest first. */
  childrenOf(teamId: string, ids: readonly string[], limit: number): Promise<Relative[]>
}
