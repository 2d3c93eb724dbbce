import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OciCommands } from './commands.ts'

/**
 * Thaws a sandbox whose state file may be wrong. runsc freezes or thaws the sandbox's kernel, then updates the file. A
 * command killed in between leaves a stale file: `resume` then refuses a frozen sandbox, and crashes the kernel of a
 * running one, because stops are counted. So this asks the kernel itself and corrects the file.
 */
export async function thawReliably(commands: OciCommands, root: string, id: string): Promise<void> {
  const isStill = (await isFrozen(commands, id)) || (await isFrozenSoon(commands, id))
  await correctStateFile(root, id, isStill ? 'paused' : 'running')
  if (isStill) await commands.execute('resume', [id])
}

/** Time within which a freeze started by a killed command takes effect. */
const settleMs = 200

async function isFrozenSoon(commands: OciCommands, id: string): Promise<boolean> {
  await sleep(settleMs)
  return isFrozen(commands, id)
}

/** Tests whether the kernel is frozen: each task is a goroutine, and all of them then wait in `doStop`. */
async function isFrozen(commands: OciCommands, id: string): Promise<boolean> {
  const stacks = (await commands.query('debug', ['--stacks', id])).split(/\n(?=goroutine )/)
  const tasks = stacks.filter((stack) => stack.includes('kernel.(*Task).run('))
  return tasks.length > 0 && tasks.every((stack) => stack.includes('kernel.(*Task).doStop('))
}

type Status = 'running' | 'paused'

export async function correctStateFile(root: string, id: string, status: Status): Promise<void> {
  const path = join(root, `${id}_sandbox:${id}.state`)
  const note = await readFile(path, 'utf8')
  const corrected = note.replace(/"status":"(running|paused)"/, `"status":"${status}"`)
  if (corrected === note) return
  await writeFile(`${path}.next`, corrected, { mode: 0o600 })
  await rename(`${path}.next`, path)
}
