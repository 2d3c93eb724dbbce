/**
 * DNS server for sandboxes that may reach only some names. Forwards queries for those names to the name servers and
 * refuses all others.
 *
 * Threats: queries come from a sandbox; answers come from a name server or from an attacker who poses as one. Each query
 * gets its own socket, so a forged answer must guess its port. The number of open queries is limited.
 */
import { createSocket } from 'node:dgram'
import type { RemoteInfo, Socket } from 'node:dgram'
import { once } from 'node:events'
import type { DecisionCounts } from '../app/decision-counts.ts'
import type { Sandboxes } from '../app/sandboxes.ts'
import { failure, isAnswerTo, readQuestion, refusal } from '../domain/dns-message.ts'

/** Returns the host port that DNS queries must be redirected to. */
export async function startDnsServer(
  parts: {
    readonly sandboxes: Sandboxes
    readonly counts: DecisionCounts
    nameservers(): readonly string[]
  },
  preferredPort: number,
): Promise<number> {
  const { sandboxes, counts, nameservers } = parts
  const pendingBySandbox = new Map<string, number>()
  const socket = await bind(preferredPort).catch(() => bind(0))
  socket.on('error', () => {})
  socket.on('message', (message, from) => void answer(message, from).catch(() => {}))
  return socket.address().port

  async function answer(message: Buffer, from: RemoteInfo): Promise<void> {
    const reply = await replyTo(message, from.address)
    if (reply) socket.send(reply, from.port, from.address, () => {})
  }

  async function replyTo(message: Buffer, from: string): Promise<Buffer | undefined> {
    const sandbox = sandboxes.find(from)
    if (!sandbox) return undefined
    const question = readQuestion(message)
    const name = question?.name
    if (name === undefined || !sandbox.allowsDnsName(name)) {
      counts.namesRefused += 1
      if (name !== undefined) {
        sandbox.record({ name, port: dnsPort, protocol: 'dns', verdict: 'denied' })
      }
      return refusal(message)
    }
    counts.namesAllowed += 1
    const count = pendingBySandbox.get(from) ?? 0
    if (count >= maxPendingQuestions) return failure(message)
    pendingBySandbox.set(from, count + 1)
    try {
      return (await askFirstAvailable(message, nameservers())) ?? failure(message)
    } finally {
      const left = (pendingBySandbox.get(from) ?? 1) - 1
      if (left > 0) pendingBySandbox.set(from, left)
      else pendingBySandbox.delete(from)
    }
  }
}

async function bind(port: number): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(port)
  await once(socket, 'listening')
  return socket
}

async function askFirstAvailable(
  question: Buffer,
  nameservers: readonly string[],
): Promise<Buffer | undefined> {
  for (const server of nameservers) {
    const answer = await ask(question, server).catch(() => undefined)
    if (answer) return answer
  }
  return undefined
}

async function ask(question: Buffer, server: string): Promise<Buffer> {
  const timeout = AbortSignal.timeout(answerTimeoutMs)
  const socket = createSocket('udp4')
  try {
    socket.connect(dnsPort, server)
    await once(socket, 'connect', { signal: timeout })
    socket.send(question)
    return await answerOn(socket, question, timeout)
  } finally {
    socket.close()
  }
}

async function answerOn(socket: Socket, question: Buffer, signal: AbortSignal): Promise<Buffer> {
  for (;;) {
    const [message]: Buffer[] = await once(socket, 'message', { signal })
    if (message && isAnswerTo(question, message)) return message
  }
}

const dnsPort = 53
const answerTimeoutMs = 2000
/** Limit per sandbox. */
const maxPendingQuestions = 64
