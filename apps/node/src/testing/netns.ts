import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { run, tryRun } from '@atoll/kit/run'
import { toLine } from '@atoll/egress/control'
import { z } from 'zod'
import type { Installation } from '../domain/host/installation.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'

export interface FirewallSetting {
  readonly installation: Installation
  readonly subnet: string
  readonly nameservers?: readonly string[]
}

export type Namespace = Awaited<ReturnType<typeof openNamespace>>

/** Creates a network namespace with an agent inside that the test controls. */
export async function openNamespace(name: string, setting: FirewallSetting) {
  await using made = new AsyncDisposableStack()
  await run('ip', ['netns', 'add', name])
  made.defer(async () => void (await tryRun('ip', ['netns', 'delete', name])))
  const { call, close } = startAgent(name, setting)
  made.defer(close)
  const owned = made.move()
  return {
    name,
    /** Runs lines with `ip -batch`. */
    async ip(...lines: readonly string[]): Promise<void> {
      await run('ip', ['-n', name, '-batch', '-'], { input: lines.join('\n') })
    },
    run: (command: string, args: readonly string[]) =>
      run('ip', ['netns', 'exec', name, command, ...args]),

    install: (slots: number[], rules: [number, NetworkRules][]) => call('install', slots, rules),
    addSlot: (slot: number, rules?: NetworkRules) => call('addSlot', slot, rules ?? null),
    setRules: (slot: number, rules?: NetworkRules) => call('setRules', slot, rules ?? null),
    removeSlot: (slot: number) => call('removeSlot', slot),
    uninstall: () => call('uninstall'),
    /** Returns lines such as `denied tcp 11.1.1.1:80 2`, sorted. */
    connections: async (slot: number) =>
      z
        .array(Counted)
        .parse(await call('connections', slot))
        .map(({ verdict, protocol, address = '', port, count, ...rest }) =>
          [verdict, protocol, `${rest.name ?? address}:${port}`, count].join(' '),
        )
        .toSorted(),

    /** Returns the time of the last denial of a slot, or null. */
    lastDenied: async (slot: number) =>
      z
        .number()
        .nullable()
        .parse(await call('lastDenied', slot)),

    /** Listens on TCP and UDP, on all addresses. */
    listen: (port: number) => call('listen', port),
    datagrams: async () => z.array(z.string()).parse(await call('datagrams')),
    dial: async (address: string, port: number) => Dialled.parse(await call('dial', address, port)),
    say: (connection: string, text: string) => call('say', connection, text),
    heard: async (connection: string) => z.string().parse(await call('heard', connection)),
    ended: (connection: string) => call('ended', connection),
    send: (address: string, port: number, text: string) => call('send', address, port, text),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const Counted = z.object({
  verdict: z.string(),
  protocol: z.string(),
  name: z.string().optional(),
  address: z.string().optional(),
  port: z.number(),
  count: z.number(),
})
const Dialled = z.union([z.object({ name: z.string() }), z.object({ error: z.string() })])
const Reply = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  error: z.string().optional(),
})

function startAgent(name: string, setting: FirewallSetting) {
  const program = join(import.meta.dirname, 'agent/main.ts')
  const command = ['netns', 'exec', name, process.execPath, program, JSON.stringify(setting)]
  const child = spawn('ip', command, { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result, error } = Reply.parse(JSON.parse(line))
    if (error === undefined) waiting.get(id)?.resolve(result)
    else waiting.get(id)?.reject(new Error(error))
  })
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the agent has ended'))
  })
  return {
    async call(method: string, ...args: unknown[]): Promise<unknown> {
      const id = waiting.size
      const answer = Promise.withResolvers<unknown>()
      waiting.set(id, answer)
      child.stdin.write(toLine({ id, method, args }))
      return answer.promise
    },
    async close(): Promise<void> {
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
