import { setTimeout as sleep } from 'node:timers/promises'
import type { OciCommands } from './commands.ts'
import type { GvisorControl } from './gvisor-control.ts'

/**
 * Thaws a sandbox that may or may not be frozen. A thaw crashes the kernel of a running sandbox, because stops are
 * counted, so this asks the kernel first.
 */
export async function thawReliably(
  commands: Pick<OciCommands, 'query'>,
  control: Pick<GvisorControl, 'thaw'>,
  id: string,
): Promise<void> {
  if ((await isFrozen(commands, id)) || (await isFrozenSoon(commands, id))) await control.thaw(id)
}

/** Time within which a freeze started by a killed server takes effect. */
const settleMs = 200

async function isFrozenSoon(commands: Pick<OciCommands, 'query'>, id: string): Promise<boolean> {
  await sleep(settleMs)
  return isFrozen(commands, id)
}

/** Tests whether the kernel is frozen: each task is a goroutine, and all of them then wait in `doStop`. */
async function isFrozen(commands: Pick<OciCommands, 'query'>, id: string): Promise<boolean> {
  const stacks = (await commands.query('debug', ['--stacks', id])).split(/\n(?=goroutine )/)
  const tasks = stacks.filter((stack) => stack.includes('kernel.(*Task).run('))
  return tasks.length > 0 && tasks.every((stack) => stack.includes('kernel.(*Task).doStop('))
}
