import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'

/**
 * Network outside the host: a network namespace with addresses of every kind, which the host routes to, and a listener.
 * Traffic of sandboxes passes through the host on its way there, like traffic to the internet.
 */
export interface Outside extends AsyncDisposable {
  /** Address open to all sandboxes. */
  readonly publicAddress: string
  /** Second open address. */
  readonly otherAddress: string
  /** Address that never answers. */
  readonly silentAddress: string
  /** Address of the host as seen from outside. */
  readonly hostAddress: string
  /** Addresses that the host reaches and a sandbox must not: private, shared and link-local. */
  readonly closedAddresses: readonly string[]
  readonly port: number
  /** Port of an echo server that keeps connections open. */
  readonly echoPort: number
  /** Returns the datagrams that have arrived. */
  datagrams(): string[]
  /** Runs a program in the namespace. */
  tryRun(command: string, args: readonly string[]): ReturnType<typeof tryRun>
  /**
   * Starts a name server for these names, and HTTP and TLS servers that return the address and name they were reached
   * by and the client's address. They run until disposal.
   */
  serveNames(names: Readonly<Record<string, string>>): Promise<void>
  /** Starts a test program in the namespace until disposal, and waits for its first output. */
  start(program: string, argument: object): Promise<void>
  /** Name of the network namespace. */
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
  await using resources = new AsyncDisposableStack()
  const name = `out${process.pid}`
  const [hostAddress, publicAddress] = [`${network}.1`, `${network}.44`]
  const otherAddress = `${network}.45`
  const silentAddress = `${network.replace(/^\d+/, '13')}.46`
  await run('ip', ['netns', 'add', name])
  resources.defer(async () => void (await run('ip', ['netns', 'delete', name])))
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name])
  resources.defer(async () => void (await tryRun('ip', ['link', 'delete', name])))
  await run('ip', ['addr', 'add', `${hostAddress}/24`, 'dev', name])
  await run('ip', ['link', 'set', name, 'up'])
  const namespaceCommands = [
    `addr add ${publicAddress}/24 dev eth0`,
    `addr add ${otherAddress}/24 dev eth0`,
    'link set lo up',
    'link set eth0 up',
    `route add default via ${hostAddress}`,
    ...closed.map((address) => `addr add ${address}/32 dev lo`),
  ]
  await run('ip', ['-n', name, '-batch', '-'], { input: namespaceCommands.join('\n') })
  const routes = [...closed, silentAddress].map(
    (address) => `route add ${address}/32 via ${publicAddress}`,
  )
  await run('ip', ['-batch', '-'], { input: routes.join('\n') })
  const listener = await listen(name)
  resources.defer(listener.close)
  const ownedResources = resources.move()
  const start: Outside['start'] = async (program, argument) => {
    const command = ['netns', 'exec', name, process.execPath, program, JSON.stringify(argument)]
    const child = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'] })
    ownedResources.defer(() => endProcess(child))
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
    [Symbol.asyncDispose]: () => ownedResources.disposeAsync(),
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
    const [, portText, echoPortText] = /^port (\d+) echo (\d+)$/m.exec(output) ?? []
    return (
      portText !== undefined &&
      echoPortText !== undefined &&
      ([Number(portText), Number(echoPortText)] as const)
    )
  })
  return {
    port,
    echoPort,
    output: () => output,
    close: () => endProcess(child),
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}
