import { readdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { cgroupFile, processesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'

/**
 * Simulates an OOM kill of a gVisor process that was just asked to map memory; that moment is too short to hit by
 * chance. `requestMapping` makes the process that holds `heldMb` MB in the sandbox map more memory. Pass a function that
 * does nothing if this process keeps mapping memory by itself.
 */
export async function simulateLostReply(
  names: Names,
  sandboxId: string,
  heldMb: number,
  requestMapping: () => Promise<unknown>,
): Promise<void> {
  const holder = await findHolder(await processesOf(names, sandboxId), heldMb)
  process.kill(holder.pid, 'SIGSTOP')
  const request = requestMapping().catch(() => {})
  await waitUntilMapping(holder.parent)
  process.kill(holder.pid, 'SIGKILL')
  const group = dirname(await cgroupFile(names, sandboxId, ['memory.max', 'memory.limit_in_bytes']))
  await tryRun('sh', ['-c', `echo $$ > ${group}/cgroup.procs && exec tail /dev/zero`])
  await request
}

/** Finds the first of the processes that share their memory: it maps memory for all of them. */
async function findHolder(pids: readonly number[], heldMb: number) {
  for (const pid of pids.toSorted((a, b) => a - b)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
    const [parent, sizeKb] = [field('PPid'), field('VmSize')]
    if (pids.includes(parent) && sizeKb > heldMb * 1024) return { pid, parent }
  }
  throw new Error(`no process of the sandbox holds ${heldMb} MB`)
}

/** Waits until a thread of gVisor's kernel waits steadily for its process; normal waits are short. */
async function waitUntilMapping(pid: number): Promise<void> {
  let readCounts = new Map<string, number>()
  await waitFor(
    'gVisor to wait for its process',
    async () => {
      const waits = await endlessWaits(pid)
      readCounts = new Map(waits.map((wait) => [wait, (readCounts.get(wait) ?? 0) + 1]))
      return [...readCounts.values()].some((count) => count === steadyReads)
    },
    { intervalMs: 20 },
  )
}

const steadyReads = 25

/** Lists threads that wait without a timeout on a futex shared with other processes, with the address. */
async function endlessWaits(pid: number): Promise<string[]> {
  const waits = []
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const call = await readFile(`/proc/${pid}/task/${thread}/syscall`, 'utf8').catch(() => '')
    if (/^(202|98) \S+ 0x0 \S+ 0x0 /.test(call)) waits.push(`${thread} ${call}`)
  }
  return waits
}
