import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkMachine } from './check-machine.ts'

const machine = { architecture: 'x64', runscRelease: async () => 'runsc version 2' }
const strict = { anyRunsc: false }

test('memory of the same runsc is accepted', async () => {
  const backup = { architecture: 'x64', memoryReleases: ['runsc version 2'] }
  await checkMachine(backup, machine, strict)
})

test('memory of another runsc is refused by name, unless it may be lost', async () => {
  const backup = { architecture: 'x64', memoryReleases: ['runsc version 1', 'runsc version 2'] }
  await assert.rejects(checkMachine(backup, machine, strict), {
    reason: 'restore_runsc',
    message: /runsc version 1 wrote, and this machine has runsc version 2/,
  })
  await checkMachine(backup, machine, { anyRunsc: true })
})

test('a backup without memory needs no runsc', async () => {
  const none = { ...machine, runscRelease: async () => undefined }
  await checkMachine({ architecture: 'x64', memoryReleases: [] }, none, strict)
  const backup = { architecture: 'x64', memoryReleases: ['runsc version 1'] }
  await assert.rejects(checkMachine(backup, none, strict), /no runsc/)
})

test('another architecture is refused, also if memory may be lost', async () => {
  const backup = { architecture: 'arm64', memoryReleases: [] }
  await assert.rejects(checkMachine(backup, machine, { anyRunsc: true }), {
    reason: 'restore_architecture',
  })
})
