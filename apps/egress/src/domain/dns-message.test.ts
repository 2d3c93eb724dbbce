import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, mutate } from '../testing/random.ts'
import { failure, isAnswerTo, readQuestion, refusal } from './dns-message.ts'

interface Parts {
  readonly id?: number
  readonly flags?: number
  /** Record counts of the header: questions, answers, authorities, additional records. */
  readonly counts?: readonly [number, number, number, number]
  readonly name?: Buffer
  readonly type?: number
  readonly dnsClass?: number
  readonly rest?: Buffer
}

const numbers = (...values: readonly number[]) =>
  Buffer.from(values.flatMap((value) => [value >> 8, value & 255]))

const wireName = (...labels: readonly string[]) =>
  Buffer.concat(
    [...labels, ''].map((label) =>
      Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    ),
  )

const www = wireName('www', 'Example', 'com')

function message(parts: Parts = {}): Buffer {
  const { id = 0xbeef, flags = 0x0100, counts = [1, 0, 0, 0], name = www } = parts
  return Buffer.concat([
    numbers(id, flags, ...counts),
    name,
    numbers(parts.type ?? 1, parts.dnsClass ?? 1),
    parts.rest ?? Buffer.alloc(0),
  ])
}

/** Query as dig sends it, and the answer of a server. */
const dig = Buffer.from(
  '1a2b01200001000000000001076578616d706c6503636f6d00001c00010000291000000000000000',
  'hex',
)
const answer = Buffer.concat([
  Buffer.from('1a2b81800001000100000000076578616d706c6503636f6d00001c0001', 'hex'),
  Buffer.from('c00c001c00010000012c001026062800022000010248189325c81946', 'hex'),
])
const longest = ['a'.repeat(63), 'b'.repeat(63), 'c'.repeat(63), 'd'.repeat(61)]
const opt = Buffer.from('0000291000000000000000', 'hex')

test('a question is parsed and converted to lower case', () => {
  assert.deepEqual(readQuestion(message()), { name: 'www.example.com', type: 1 })
  assert.deepEqual(readQuestion(dig), { name: 'example.com', type: 28 })
})

for (const [what, parts, expected] of [
  [
    'for a service name',
    { name: wireName('_sip', '_tcp', 'a-b', 'example'), type: 33 },
    '_sip._tcp.a-b.example',
  ],
  ['for the root', { name: wireName(), type: 2 }, '.'],
  ['for the longest name', { name: wireName(...longest) }, longest.join('.')],
  ['with additional records', { counts: [1, 0, 0, 1], rest: opt }, 'www.example.com'],
  ['that wants no recursion', { flags: 0 }, 'www.example.com'],
] satisfies [string, Parts, string][]) {
  test(`a question ${what} is parsed`, () => {
    assert.equal(readQuestion(message(parts))?.name, expected)
  })
}

for (const [attack, parts] of [
  ['that is an answer', { flags: 0x8180 }],
  ['of another opcode', { flags: 0x2800 }],
  ['without a question', { counts: [0, 0, 0, 0] }],
  ['with two questions', { counts: [2, 0, 0, 0], rest: Buffer.concat([www, numbers(1, 1)]) }],
  ['with answer records', { counts: [1, 1, 0, 0] }],
  ['with authority records', { counts: [1, 0, 1, 0] }],
  ['of class CHAOS', { dnsClass: 3 }],
  ['of any class', { dnsClass: 255 }],
  ['with a pointer to itself', { name: Buffer.from([0xc0, 12]) }],
  ['with a pointer after a label', { name: Buffer.from([1, 97, 0xc0, 12]) }],
  ['with a reserved kind of label', { name: Buffer.from([0x41, 97, 0]) }],
  ['with a label that reaches past the end', { name: Buffer.from([63, 97, 98]) }],
  ['with a dot inside a label', { name: wireName('www.example', 'com') }],
  ['with a label that is a dot', { name: wireName('example', 'com', '.') }],
  ['with a NUL in a label', { name: wireName('a\0', 'com') }],
  ['with a space in a label', { name: wireName('a b', 'com') }],
  ['with a byte not in ASCII', { name: wireName('b\xfccher', 'com') }],
  ['for an IP address', { name: wireName('10', '0', '0', '1') }],
  [
    'for a name that is too long',
    { name: wireName(...Array.from({ length: 4 }, () => 'a'.repeat(63))) },
  ],
  [
    'for a name of very many labels',
    { name: wireName(...Array.from({ length: 1000 }, () => 'a')) },
  ],
  ['longer than the limit', { rest: Buffer.alloc(4096) }],
] satisfies [string, Parts][]) {
  test(`a message ${attack} is not a valid question`, () => {
    assert.equal(readQuestion(message(parts)), undefined)
  })
}

test('a truncated message is not a valid question', () => {
  const whole = message()
  for (let length = 0; length < whole.length; length += 1) {
    assert.equal(readQuestion(whole.subarray(0, length)), undefined)
  }
})

test('REFUSED and SERVFAIL replies contain the question and nothing else', () => {
  const query = message({ counts: [1, 0, 0, 1], rest: opt })
  assert.deepEqual(refusal(query), message({ flags: 0x8185 }))
  assert.deepEqual(failure(query), message({ flags: 0x8182 }))
  assert.deepEqual(refusal(message({ flags: 0 })), message({ flags: 0x8085 }))
})

test('a refusal matches its query', () => {
  for (const query of [dig, message(), message({ name: wireName('a.b', '\0') })]) {
    assert.equal(isAnswerTo(query, refusal(query) ?? query), true)
  }
})

test('a reply copies only the opcode and the recursion-desired bit', () => {
  assert.deepEqual(refusal(message({ flags: 0x07ff })), message({ flags: 0x8185 }))
})

test('a refusal leaves out a question that cannot be parsed', () => {
  const bare = numbers(0xbeef, 0x8185, 0, 0, 0, 0)
  assert.deepEqual(refusal(message({ name: Buffer.from([0xc0, 12]) })), bare)
  assert.deepEqual(refusal(message({ counts: [9, 9, 9, 9] })), bare)
  assert.deepEqual(refusal(message().subarray(0, 12)), bare)
})

test('answers are never answered, so two servers cannot loop', () => {
  for (const flags of [0x8000, 0x8180, 0x8185, 0xffff]) {
    assert.equal(refusal(message({ flags })), undefined)
    assert.equal(failure(message({ flags })), undefined)
  }
})

test('a message without a full header or beyond the size limit is not answered', () => {
  assert.equal(refusal(message().subarray(0, 11)), undefined)
  assert.equal(failure(Buffer.alloc(0)), undefined)
  assert.equal(refusal(message({ rest: Buffer.alloc(4096) })), undefined)
})

test('an answer matches its query', () => {
  assert.equal(isAnswerTo(dig, answer), true)
})

for (const [attack, forged] of [
  ['with another id', { id: 0xbeee, flags: 0x8180 }],
  ['that is a query', { flags: 0x0100 }],
  ['of another opcode', { flags: 0xa980 }],
  ['to another name', { flags: 0x8180, name: wireName('www', 'Example', 'org') }],
  ['to the name in other case', { flags: 0x8180, name: wireName('www', 'example', 'com') }],
  ['to another type', { flags: 0x8180, type: 28 }],
  ['to another class', { flags: 0x8180, dnsClass: 3 }],
  ['without a question', { flags: 0x8180, counts: [0, 0, 0, 0] }],
  ['with two questions', { flags: 0x8180, counts: [2, 0, 0, 0] }],
] satisfies [string, Parts][]) {
  test(`a forged answer ${attack} is rejected`, () => {
    assert.equal(isAnswerTo(message(), message(forged)), false)
  })
}

test('a message that is not a query has no answer', () => {
  const other = message({ flags: 0x8180 })
  assert.equal(isAnswerTo(other, other), false)
  assert.equal(isAnswerTo(Buffer.alloc(0), Buffer.alloc(0)), false)
})

test('malformed messages never throw, and replies are never longer than the message', () => {
  const random = createRandom(6)
  let asked = 0
  for (let round = 0; round < 40_000; round += 1) {
    const original = [dig, answer, message(), random.bytes(random.below(60))][round % 4] ?? dig
    const bytes = mutate(original, random)
    const question = readQuestion(bytes)
    if (question) {
      asked += 1
      const text = bytes.toString('latin1').toLowerCase()
      assert.ok(
        question.name === '.' || question.name.split('.').every((label) => text.includes(label)),
      )
    }
    const isQuery = bytes.length >= 12 && ((bytes[2] ?? 0) & 0x80) === 0
    for (const said of [refusal(bytes), failure(bytes)]) {
      assert.equal(said !== undefined, isQuery)
      assert.ok((said?.length ?? 0) <= bytes.length)
      assert.equal(refusal(said ?? Buffer.alloc(0)), undefined)
    }
    isAnswerTo(bytes, mutate(original, random))
  }
  assert.ok(asked > 1000)
})
