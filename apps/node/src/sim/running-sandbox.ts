import type { RunningSandbox } from '../domain/sandbox.ts'
import { parseSubnet, toSlot } from '../domain/slot.ts'

const slot = toSlot(parseSubnet('10.0.0.0/24'), 'atx-', 0)

/** One of gVisor whose every name is this one. */
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
