import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OciCommands } from './commands.ts'

/**
 * runsc tells the sandbox's kernel to stand still or go on, and then notes it in a file. A command that is killed in
 * between leaves a note that is wrong: after it, `resume` refuses one that stands still, and ends the kernel of one
 * that goes on, because stops are counted. So the kernel is asked, and the note corrected.
 */
export async function goOnAnyway(commands: OciCommands, root: string, id: string): Promise<void> {
  const isStill = (await standsStill(commands, id)) || (await standsStillSoon(commands, id))
  await correctNote(root, id, isStill ? 'paused' : 'running')
  if (isStill) await commands.tell('resume', [id])
}

/** What was told to stand still by a command that is gone does so within this time. */
const settleMs = 200

async function standsStillSoon(commands: OciCommands, id: string): Promise<boolean> {
  await sleep(settleMs)
  return standsStill(commands, id)
}

/** Each task inside is a goroutine of the kernel; while they are stopped from outside, all of them wait for that to end. */
async function standsStill(commands: OciCommands, id: string): Promise<boolean> {
  const stacks = (await commands.ask('debug', ['--stacks', id])).split(/\n(?=goroutine )/)
  const tasks = stacks.filter((stack) => stack.includes('kernel.(*Task).run('))
  return tasks.length > 0 && tasks.every((stack) => stack.includes('kernel.(*Task).doStop('))
}

type Status = 'running' | 'paused'

export async function correctNote(root: string, id: string, status: Status): Promise<void> {
  const path = join(root, `${id}_sandbox:${id}.state`)
  const note = await readFile(path, 'utf8')
  const corrected = note.replace(/"status":"(running|paused)"/, `"status":"${status}"`)
  if (corrected === note) return
  await writeFile(`${path}.next`, corrected, { mode: 0o600 })
  await rename(`${path}.next`, path)
}
