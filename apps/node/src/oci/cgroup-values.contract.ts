import { readFile } from 'node:fs/promises'
import type { Host } from '../composition/host.ts'

export function cpuWeight(host: Host, id: string): Promise<number> {
  const group = `${host.installation.cgroup}/${id}`
  return firstNumber([
    `/sys/fs/cgroup/cpu/${group}/cpu.shares`,
    `/sys/fs/cgroup/${group}/cpu.weight`,
  ])
}

export function memoryLimit(host: Host, id: string): Promise<number> {
  const group = `${host.installation.cgroup}/${id}`
  return firstNumber([
    `/sys/fs/cgroup/memory/${group}/memory.limit_in_bytes`,
    `/sys/fs/cgroup/${group}/memory.max`,
  ])
}

async function firstNumber(files: readonly string[]): Promise<number> {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  return Number(texts.join(''))
}

/**
 * Tests whether the freeze is complete: running tasks leave the CPU first, and the kernel reports it in one of these
 * files.
 */
export async function isGroupFrozen(group: string): Promise<boolean> {
  const files = [`freezer/${group}/freezer.state`, `${group}/cgroup.events`]
  const texts = files.map((file) => readFile(`/sys/fs/cgroup/${file}`, 'utf8').catch(() => ''))
  return (await Promise.all(texts)).some((text) => /^(FROZEN|frozen 1)$/m.test(text))
}
