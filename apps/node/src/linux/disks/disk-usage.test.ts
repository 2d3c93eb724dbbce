import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDiskUsage, parseLine } from './disk-usage.ts'

test('blocks become bytes', () => {
  assert.deepEqual(parseLine('ext2/ext3 4096 100 40 /run/atoll/abcde/mounts/disk/i1'), [
    'i1',
    { totalBytes: 409_600n, usedBytes: 245_760n },
  ])
})

for (const line of [
  '',
  'tmpfs 4096 100 40 /run/atoll/abcde/mounts/disk/i1',
  "stat: cannot read file system information for '/run/x': No such file or directory",
]) {
  test(`${line || 'an empty line'} describes no disk`, () => {
    assert.equal(parseLine(line), undefined)
  })
}

function setup(code: number | null) {
  const commands: string[] = []
  const usage = createDiskUsage(
    {
      run: () => assert.fail('a disk that has gone would fail it'),
      async tryRun(command, args) {
        commands.push(`${command} ${args.join(' ')}`)
        const stdout = args
          .filter((arg) => arg.endsWith('2'))
          .map((path) => `ext2/ext3 1024 10 4 ${path}\n`)
        return { code, signal: null, stdout: stdout.join(''), stderr: 'said' }
      },
    },
    '/disks',
  )
  return { usage, commands }
}

test('one command measures all disks and omits removed ones', async () => {
  const { usage, commands } = setup(1)
  const found = await usage(['i1', 'i2', 'i12'])
  assert.deepEqual([...found.keys()], ['i2', 'i12'])
  assert.deepEqual(commands, ['stat -f -c %T %S %b %f %n -- /disks/i1 /disks/i2 /disks/i12'])
})

test('without sandboxes nothing is run', async () => {
  const { usage, commands } = setup(0)
  assert.deepEqual([(await usage([])).size, commands], [0, []])
})

test('a command that could not do its work is a failure', async () => {
  await assert.rejects(setup(127).usage(['i1']), /disks could not be measured: said/)
  await assert.rejects(setup(null).usage(['i1']), /disks could not be measured/)
})
