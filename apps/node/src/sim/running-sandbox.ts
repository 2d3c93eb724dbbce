import type { RunningSandbox } from '../domain/sandboxes/sandbox.ts'
import { parseSubnet, toSlot } from '../domain/network/slot.ts'

const slot = toSlot(parseSubnet('10.0.0.0/24'), 'atx-', 0)

/** Creates a gVisor sandbox that uses `name` for all its IDs. */
export function runningSandbox(name: string): RunningSandbox {
  const record = {
    cellId: name,
    templateId: 'base',
    cpuCount: 2,
    memoryMb: 256,
    diskSizeMb: 64,
    phase: 'running',
    runtime: 'gvisor',
    layer: 'l1',
    envd: 'e1',
    initToken: 't',
    disk: 'disk.img',
    process: { pid: 1, started: name },
    owner: { sandboxId: name, envVars: {} },
  } as const
  return { record, slot }
}
