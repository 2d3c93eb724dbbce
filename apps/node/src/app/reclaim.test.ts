import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SandboxRecord } from '../domain/sandbox.ts'
import { parseSubnet } from '../domain/slot.ts'
import { reclaim } from './reclaim.ts'

const base = { templateId: 'base', envd: 'e1', cpuCount: 1, memoryMb: 256, diskSizeMb: 64 }

test('what lives is adopted; what is dead, half made, unreadable or unknown is erased', async () => {
  const record = (
    sandboxId: string,
    phase: SandboxRecord['phase'],
    pid: number,
  ): SandboxRecord => ({
    ...base,
    sandboxId,
    phase,
    slotNumber: pid,
    process: { pid, started: 'then' },
  })
  const erased: string[] = []
  const removedSlots: string[] = []
  const strayKeepers: ReadonlySet<string>[] = []
  const adopted = await reclaim(
    {
      records: {
        list: async () => [
          { sandboxId: 'alive', record: record('alive', 'running', 1) },
          { sandboxId: 'dead', record: record('dead', 'running', 2) },
          { sandboxId: 'half', record: record('half', 'creating', 3) },
          { sandboxId: 'torn', record: undefined },
        ],
      },
      isAlive: ({ pid }) => pid !== 2,
      traces: async () => ['alive', 'half', 'stranger'],
      killStrays: async (keep) => void strayKeepers.push(keep),
      erase: async (id) => void erased.push(id),
      slotNames: async () => ['atx-1', 'atx-3', 'atx-9'],
      removeSlot: async (slot) => void removedSlots.push(slot.link),
    },
    parseSubnet('10.0.0.0/24'),
    'atx-',
  )
  assert.deepEqual(
    adopted.map((sandbox) => [sandbox.record.sandboxId, sandbox.slot.number]),
    [['alive', 1]],
  )
  assert.deepEqual(erased.toSorted(), ['dead', 'half', 'stranger', 'torn'])
  assert.deepEqual(removedSlots, ['atx-3', 'atx-9'])
  assert.deepEqual(strayKeepers, [new Set(['alive'])])
})
