import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'

/** A server beyond the host, at an address where sandboxes may go, which greets and then holds every connection. */
export interface FarServer extends AsyncDisposable {
  readonly address: string
  readonly port: number
}

export async function openFarServer(): Promise<FarServer> {
  await using made = new AsyncDisposableStack()
  const name = `far${process.pid}`
  // An address of its own for each process: several may do this at a time.
  const [high, low] = [Math.floor(process.pid / 64) % 256, (process.pid % 64) * 4]
  const [host, address] = [`12.34.${high}.${low + 1}`, `12.34.${high}.${low + 2}`]
  await run('ip', ['netns', 'add', name])
  made.defer(async () => void (await run('ip', ['netns', 'delete', name])))
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name])
  made.defer(async () => void (await tryRun('ip', ['link', 'delete', name])))
  await run('ip', ['addr', 'add', `${host}/30`, 'dev', name])
  await run('ip', ['link', 'set', name, 'up'])
  const inThere = [
    `addr add ${address}/30 dev eth0`,
    'link set eth0 up',
    `route add default via ${host}`,
  ]
  await run('ip', ['-n', name, '-batch', '-'], { input: inThere.join('\n') })
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  made.defer(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const port = await waitFor('the far server', () => {
    if (child.exitCode !== null) throw new Error('the far server ended')
    return output.endsWith('\n') && Number(output)
  })
  const owned = made.move()
  return { address, port, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

const source = `
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => {})
  socket.write('hello')
})
server.listen(0, () => console.log(server.address().port))
`
