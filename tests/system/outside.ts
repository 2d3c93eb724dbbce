import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'

/**
 * A piece of the world beyond the host: a network namespace with addresses of every sort, to which the host has
 * routes, and a listener. Traffic of sandboxes passes the host on its way there, as it would to the internet.
 */
export interface Outside extends AsyncDisposable {
  /** Where everybody may go. */
  readonly publicAddress: string
  /** Another such place. */
  readonly otherAddress: string
  /** Where nobody answers. */
  readonly silentAddress: string
  /** The host as seen from there. */
  readonly hostAddress: string
  /** Where the host gets and a sandbox must not: private, shared and link-local. */
  readonly closedAddresses: readonly string[]
  readonly port: number
  /** Where a connection stays open, and what is said comes back. */
  readonly echoPort: number
  /** Datagrams that have arrived. */
  datagrams(): string[]
  /** Runs a program in there. */
  tryRun(command: string, args: readonly string[]): ReturnType<typeof tryRun>
  /**
   * Starts a name server that knows these names, and servers for HTTP and TLS that say at which address they were reached,
   * by which name and by whom. Until the end of it all.
   */
  serveNames(names: Readonly<Record<string, string>>): Promise<void>
  /** Starts a program of ours in there, until the end of it all, and waits for its first word. */
  start(program: string, given: object): Promise<void>
  /** Its name, to start more in there. */
  readonly namespace: string
}

const closedAddresses = [
  '10.255.77.7',
  '100.64.77.7',
  '169.254.169.254',
  '172.31.77.7',
  '192.168.177.7',
  '198.18.77.7',
]

export async function openOutside(
  network = '11.22.33',
  closed: readonly string[] = closedAddresses,
): Promise<Outside> {
  await using made = new AsyncDisposableStack()
  const name = `out${process.pid}`
  const [hostAddress, publicAddress] = [`${network}.1`, `${network}.44`]
  const otherAddress = `${network}.45`
  const silentAddress = `${network.replace(/^\d+/, '13')}.46`
  await run('ip', ['netns', 'add', name])
  made.defer(async () => void (await run('ip', ['netns', 'delete', name])))
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name])
  made.defer(async () => void (await tryRun('ip', ['link', 'delete', name])))
  await run('ip', ['addr', 'add', `${hostAddress}/24`, 'dev', name])
  await run('ip', ['link', 'set', name, 'up'])
  const inThere = [
    `addr add ${publicAddress}/24 dev eth0`,
    `addr add ${otherAddress}/24 dev eth0`,
    'link set lo up',
    'link set eth0 up',
    `route add default via ${hostAddress}`,
    ...closed.map((address) => `addr add ${address}/32 dev lo`),
  ]
  await run('ip', ['-n', name, '-batch', '-'], { input: inThere.join('\n') })
  const routes = [...closed, silentAddress].map(
    (address) => `route add ${address}/32 via ${publicAddress}`,
  )
  await run('ip', ['-batch', '-'], { input: routes.join('\n') })
  const listener = await listen(name)
  made.defer(listener.close)
  const owned = made.move()
  const start: Outside['start'] = async (program, given) => {
    const command = ['netns', 'exec', name, process.execPath, program, JSON.stringify(given)]
    const child = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'] })
    owned.defer(() => endProcess(child))
    await once(child.stdout, 'data')
  }
  return {
    publicAddress,
    otherAddress,
    hostAddress,
    silentAddress,
    closedAddresses: closed,
    port: listener.port,
    echoPort: listener.echoPort,
    datagrams: () =>
      [...listener.output().matchAll(/^datagram (.*)$/gm)].map((match) => match[1] ?? ''),
    tryRun: (command, args) => tryRun('ip', ['netns', 'exec', name, command, ...args]),
    start,
    serveNames: (names) =>
      start(fileURLToPath(import.meta.resolve('@atoll/node/testing/world-services')), {
        [publicAddress]: names,
      }),
    namespace: name,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function listen(namespace: string) {
  const program = join(import.meta.dirname, 'listener.ts')
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, program, 'outside'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [port, echoPort] = await waitFor('the listener', () => {
    if (child.exitCode !== null) throw new Error('the listener ended')
    const [, found, echo] = /^port (\d+) echo (\d+)$/m.exec(output) ?? []
    return found !== undefined && echo !== undefined && ([Number(found), Number(echo)] as const)
  })
  return {
    port,
    echoPort,
    output: () => output,
    close: () => endProcess(child),
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
