import { createCursor } from './sniffing/cursor.ts'
import { toDnsName } from './dns-name.ts'

/**
 * Parses as much of a DNS message as is needed to check a query and to reject it (RFC 1035, 4).
 *
 * Threats: queries come from a sandbox, answers from anybody who can send a packet. Compressed names are rejected, so a
 * pointer loop is impossible. Answers are never answered, or two servers could talk forever. Our replies are never
 * longer than the query.
 */
export interface Question {
  /** Normalized by dns-name.ts; a single dot is the root. */
  readonly name: string
  readonly type: number
}

/** Returns undefined unless the message is a well-formed query with one question of class IN. */
export function readQuestion(message: Buffer): Question | undefined {
  const parts = readParts(message)
  if (!parts?.question || parts.isAnswer || parts.opcode !== 0 || parts.hasAnswers) return undefined
  const { labels, type, dnsClass } = parts.question
  const name = labels.length === 0 ? '.' : toName(labels)
  return name === undefined || dnsClass !== internet ? undefined : { name, type }
}

/** REFUSED reply: the sandbox may not resolve this name. Undefined if the message must not be answered. */
export function refusal(message: Buffer): Buffer | undefined {
  return emptyAnswer(message, 5)
}

/** SERVFAIL reply: no name server answered. Undefined if the message must not be answered. */
export function failure(message: Buffer): Buffer | undefined {
  return emptyAnswer(message, 2)
}

/** Compares the question byte by byte, because clients mix upper and lower case to make forging harder. */
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
  /** Whether the answer or authority section has records. A query has none; it may have additional records (EDNS). */
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
    // Longer lengths are compression pointers (RFC 1035, 4.1.4) or reserved.
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

/** Rejects labels that contain a dot, since they would make one name look like another. */
function toName(labels: readonly Buffer[]): string | undefined {
  const texts = labels.map((label) => label.toString('latin1'))
  return texts.some((text) => text.includes('.')) ? undefined : toDnsName(texts.join('.'))
}

/** Leaves out the question if it could not be parsed. */
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
