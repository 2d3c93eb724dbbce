import { createCursor } from './cursor.ts'
import { toDnsName } from './dns-name.ts'

/**
 * As much of a DNS message as it takes to decide about a question and to answer in the negative (RFC 1035, 4).
 *
 * Threats: queries come from a sandbox, answers from anybody who can send a packet. Questions are read without
 * compression, so that no pointer can go round. An answer is never answered, or two servers would talk forever. What we
 * say is never longer than what was asked.
 */
export interface Question {
  /** As in dns-name.ts; the root is a single dot. */
  readonly name: string
  readonly type: number
}

/** Undefined for all but one question of class IN, in a query that we can read whole. */
export function readQuestion(message: Buffer): Question | undefined {
  const parts = readParts(message)
  if (!parts?.question || parts.isAnswer || parts.opcode !== 0 || parts.hasAnswers) return undefined
  const { labels, type, dnsClass } = parts.question
  const name = labels.length === 0 ? '.' : toName(labels)
  return name === undefined || dnsClass !== internet ? undefined : { name, type }
}

/** Says that this name is not for the asker. Undefined for what must not be answered. */
export function refusal(message: Buffer): Buffer | undefined {
  return emptyAnswer(message, 5)
}

/** Says that no answer could be had. Undefined for what must not be answered. */
export function failure(message: Buffer): Buffer | undefined {
  return emptyAnswer(message, 2)
}

/** Compares the question byte by byte: clients mix upper and lower case to make forging harder. */
export function isAnswerTo(query: Buffer, answer: Buffer): boolean {
  const asked = readParts(query)
  const answered = readParts(answer)
  if (!asked?.question || !answered?.question) return false
  return (
    !asked.isAnswer &&
    answered.isAnswer &&
    asked.id === answered.id &&
    asked.opcode === answered.opcode &&
    asked.question.bytes.equals(answered.question.bytes)
  )
}

const limitBytes = 4096
const headBytes = 12
const internet = 1
const answerBit = 0x8000
const opcodeBits = 0x7800
const recursionDesired = 0x0100
const recursionAvailable = 0x0080

interface Parts {
  readonly id: number
  readonly flags: number
  readonly isAnswer: boolean
  readonly opcode: number
  /** Records where a query has none; it may have additional ones (EDNS). */
  readonly hasAnswers: boolean
  readonly question?: QuestionPart
}

interface QuestionPart {
  readonly bytes: Buffer
  readonly labels: readonly Buffer[]
  readonly type: number
  readonly dnsClass: number
}

function readParts(message: Buffer): Parts | undefined {
  if (message.length < headBytes || message.length > limitBytes) return undefined
  const flags = message.readUInt16BE(2)
  const isSingle = message.readUInt16BE(4) === 1
  const question = isSingle ? readQuestionPart(message.subarray(headBytes)) : undefined
  return {
    id: message.readUInt16BE(0),
    flags,
    isAnswer: (flags & answerBit) !== 0,
    opcode: (flags & opcodeBits) >> 11,
    hasAnswers: message.readUInt32BE(6) !== 0,
    ...(question && { question }),
  }
}

const longestLabel = 63
const longestName = 255

function readQuestionPart(bytes: Buffer): QuestionPart | undefined {
  const fields = createCursor(bytes)
  const labels: Buffer[] = []
  for (;;) {
    // Greater lengths are pointers (RFC 1035, 4.1.4) or reserved.
    if ((bytes[fields.position() ?? bytes.length] ?? Infinity) > longestLabel) return undefined
    const label = fields.vector(1)
    if (!label || (fields.position() ?? Infinity) > longestName) return undefined
    if (label.length === 0) break
    labels.push(label)
  }
  const type = fields.number(2)
  const dnsClass = fields.number(2)
  if (type === undefined || dnsClass === undefined) return undefined
  return { bytes: bytes.subarray(0, fields.position()), labels, type, dnsClass }
}

/** A dot inside a label would make one name look like another. */
function toName(labels: readonly Buffer[]): string | undefined {
  const texts = labels.map((label) => label.toString('latin1'))
  return texts.some((text) => text.includes('.')) ? undefined : toDnsName(texts.join('.'))
}

/** Without the question where that could not be read. */
function emptyAnswer(message: Buffer, code: number): Buffer | undefined {
  const parts = readParts(message)
  if (!parts || parts.isAnswer) return undefined
  const kept = parts.flags & (opcodeBits | recursionDesired)
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(parts.id, 0)
  head.writeUInt16BE(answerBit | kept | recursionAvailable | code, 2)
  head.writeUInt16BE(parts.question ? 1 : 0, 4)
  return Buffer.concat([head, parts.question?.bytes ?? Buffer.alloc(0)])
}
