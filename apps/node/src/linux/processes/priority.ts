import { getPriority, setPriority } from 'node:os'
import { changeThreads } from './threads.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'

/** Gives all threads of a process the priority of this one. Without permission nothing changes, and all is just slower. */
export function shareOwnPriority({ pid }: Pick<ProcessIdentity, 'pid'>): void {
  const priority = getPriority()
  changeThreads(pid, (thread) => setPriority(Number(thread), priority))
}
