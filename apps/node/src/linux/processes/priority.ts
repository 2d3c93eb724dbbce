import { getPriority, setPriority } from 'node:os'
import { threadsOf } from './threads.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'

/** Gives all threads of a process the priority of this one. Ignores errors: without permission all is just slower. */
export function shareOwnPriority({ pid }: Pick<ProcessIdentity, 'pid'>): void {
  const priority = getPriority()
  // A new thread inherits the priority of its parent, so the second pass catches threads that started during the first.
  for (const _ of passes) {
    for (const thread of threadsOf(pid)) {
      try {
        setPriority(Number(thread), priority)
      } catch {}
    }
  }
}

const passes = [1, 2]
