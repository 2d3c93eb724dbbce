import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunOptions } from '@atoll/kit/run'
import { createGvisor } from './gvisor.ts'

test('to save gigabytes of memory takes longer than commands usually may', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-save-'))
  const saves: { readonly into: string | undefined; readonly timeoutMs: number | undefined }[] = []
  const gvisor = createGvisor({
    namespace: {
      run: async () => '',
      async tryRun(_command, args, options: RunOptions = {}) {
        if (args.includes('checkpoint')) {
          saves.push({
            into: args[args.indexOf('--image-path') + 1],
            timeoutMs: options.timeoutMs,
          })
        }
        return { code: 0, signal: null, stdout: '', stderr: '' }
      },
    },
    stateDir: join(dir, 'state'),
    dataDir: dir,
    cgroupParent: 'atoll-test',
    release: async () => 'runsc test',
    memoryFormat: async () => 'runsc test',
  })
  try {
    await gvisor.saveMemory('c1', join(dir, 'memory'))
  } finally {
    await rm(dir, { recursive: true })
  }
  const last = saves.at(-1)
  assert.equal(last?.into, join(dir, 'memory'))
  assert.ok((last.timeoutMs ?? 60_000) > 200_000)
})
