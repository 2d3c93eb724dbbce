import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadStream } from 'node:tty'
import { waitFor } from '@atoll/kit/wait'
import { loadTerminalAddon } from './pty-addon.ts'

test('the native binding of node-pty has fork and resize with the arguments of version 1.1', async (t) => {
  const addon = loadTerminalAddon()
  const ends: [number, number][] = []
  const script = 'echo "$NAME in $PWD"; stty size; read line; stty size; exit 7'
  const { fd, pid } = addon.fork(
    ...(['/bin/sh', ['-c', script], ['NAME=value'], '/usr', 81, 25] as const),
    ...([-1, -1, true, ''] as const),
    (code, signal) => ends.push([code, signal]),
  )
  assert.ok(pid > 0)
  const terminal = new ReadStream(fd)
  t.after(() => terminal.destroy())
  terminal.on('error', () => {}) // EIO after the exit
  let output = ''
  terminal.on('data', (bytes) => (output += String(bytes)))
  await waitFor('the first size', () => /value in \/usr\r\n25 81\r\n/.test(output))
  addon.resize(fd, 100, 30)
  terminal.write('\n')
  await waitFor('the end', () => ends.length > 0)
  assert.deepEqual(ends, [[7, 0]])
  await waitFor('the new size', () => output.includes('30 100\r\n'))
})
