import assert from 'node:assert/strict'
import { beforeEach, mock, suite, test } from 'node:test'
import { createOutputWindow } from './output-window.ts'
import { createTerminalOutput } from './terminal-output.ts'

suite('output of a terminal', () => {
  beforeEach(() => mock.timers.reset())

  const setup = (size: number) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const sent: string[] = []
    const window = createOutputWindow(new AbortController().signal, size)
    const output = createTerminalOutput(window, (bytes) => sent.push(Buffer.from(bytes).toString()))
    return { sent, window, output, push: (text: string) => output.push(Buffer.from(text)) }
  }

  test('an interrupt drops nothing while the page keeps up', async () => {
    const { sent, output, push } = setup(100)
    await push('one')
    output.interrupt()
    await push('two')
    assert.deepEqual(sent, ['one', 'two'])
  })

  test('an interrupt drops what waits, says so once, and keeps the prompt', async () => {
    const { sent, output, push } = setup(10)
    const waiting = push('x'.repeat(11))
    output.interrupt()
    await waiting
    await push(`${'y'.repeat(5_000_000)}\r\n`)
    await push('^C\r\nuser@sandbox:~$ ')
    assert.equal(sent.length, 1)
    mock.timers.tick(1_000)
    assert.equal(sent.length, 2)
    assert.match(sent[1] ?? '', /\[5\.0 MB of output dropped after the interrupt\]/)
    assert.match(sent[1] ?? '', /\r\n\^C\r\nuser@sandbox:~\$ $/)
    assert.ok((sent[1] ?? '').length < 2_500)
  })

  test('the rest of a piece that waited is dropped too', async () => {
    const { sent, output, push } = setup(10)
    const waiting = push('z'.repeat(100_000))
    output.interrupt()
    await waiting
    output.flush()
    assert.equal(sent.length, 2)
    assert.match(sent[1] ?? '', /dropped/)
  })

  test('the end of the process shows what was kept at once', async () => {
    const { sent, output, push } = setup(10)
    const waiting = push('x'.repeat(11))
    output.interrupt()
    await waiting
    await push('bye\r\n')
    output.flush()
    assert.deepEqual(sent.slice(1), ['bye\r\n'])
  })
})
