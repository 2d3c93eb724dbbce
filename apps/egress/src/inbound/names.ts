/**
 * Answers the questions for names of sandboxes that may go to some names only: those are asked of the name servers, all
 * others refused.
 *
 * Threats: questions are a sandbox's, answers a name server's, or of somebody who pretends to be one. Each question has a
 * socket of its own, so that a wrong answer has to guess its port, and few may be open at once.
 */
import { createSocket } from 'node:dgram'
import type { RemoteInfo, Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Sandboxes } from '../app/sandboxes.ts'
import { failure, isAnswerTo, readQuestion, refusal } from '../domain/dns-message.ts'

/** Answers the port of the host that questions are to be led to. */
export async function openNames(
  sandboxes: Sandboxes,
  nameservers: () => readonly string[],
  preferredPort: number,
): Promise<number> {
  const asked = new Map<string, number>()
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
    if (!question || !sandbox.allowsName(question.name)) return refusal(message)
    const count = asked.get(from) ?? 0
    if (count >= mostQuestions) return failure(message)
    asked.set(from, count + 1)
    try {
      return (await askInTurn(message, nameservers())) ?? failure(message)
    } finally {
      const left = (asked.get(from) ?? 1) - 1
      if (left > 0) asked.set(from, left)
      else asked.delete(from)
    }
  }
}

async function bind(port: number): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(port)
  await once(socket, 'listening')
  return socket
}

async function askInTurn(
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
  const patience = AbortSignal.timeout(answerLimitMs)
  const socket = createSocket('udp4')
  try {
    socket.connect(namePort, server)
    await once(socket, 'connect', { signal: patience })
    socket.send(question)
    return await answerOn(socket, question, patience)
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

const namePort = 53
const answerLimitMs = 2000
/** Of one sandbox at a time. */
const mostQuestions = 64
