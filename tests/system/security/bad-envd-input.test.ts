import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { envdHeaders, shell } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { basic, endFlag, frame, framesOf, send } from '../wire.ts'
import type { Call } from '../wire.ts'
import {
  callProcess,
  checkHealth,
  checkRefusal,
  checkUnchanged,
  startTarget,
  toProcessCall,
} from './bad-input-target.ts'
import type { Target } from './bad-input-target.ts'

/**
 * Bad requests to a sandbox. Each gets its exact status and a message that says what to do, and changes nothing.
 */

let target: Target
let cloud: HttpCloud
let url: string
let sandbox: HttpSandbox

before(async () => {
  target = await startTarget()
  ;({ cloud, url, sandbox } = target)
})
after(() => cloud?.[Symbol.asyncDispose]())
afterEach(() => checkUnchanged(target))

suite('routing headers', () => {
  const malformed: [string, Record<string, string>, number, RegExp][] = [
    ['no port', { 'Svc-Sandbox-Port': '-' }, 400, /Svc-Sandbox-Port is missing/],
    ['no id', { 'Svc-Sandbox-Id': '-' }, 400, /Svc-Sandbox-Id is missing/],
    ['the port abc', { 'Svc-Sandbox-Port': 'abc' }, 400, /port must be a number/],
    ['the port -1', { 'Svc-Sandbox-Port': '-1' }, 400, /port must be a number/],
    ['an empty port', { 'Svc-Sandbox-Port': '' }, 400, /port must be a number/],
    ['the port 0', { 'Svc-Sandbox-Port': '0' }, 502, /nothing answers on its port 0/],
    ['the port 99999', { 'Svc-Sandbox-Port': '99999' }, 502, /nothing answers on its port 99999/],
    ['an id in capitals', { 'Svc-Sandbox-Id': 'ABC' }, 400, /lower-case letters and digits/],
    ['an id that is a path', { 'Svc-Sandbox-Id': '../x' }, 400, /lower-case letters and digits/],
    ['an id with a space', { 'Svc-Sandbox-Id': 'a b' }, 400, /lower-case letters and digits/],
    ['a list of ids', { 'Svc-Sandbox-Id': 'a, b' }, 400, /lower-case letters and digits/],
    ['an endless id', { 'Svc-Sandbox-Id': 'a'.repeat(64) }, 400, /lower-case letters and digits/],
    ['an unknown id', { 'Svc-Sandbox-Id': 'abc' }, 502, /The sandbox was not found/],
    ['two ids', { 'E2b-Sandbox-Id': 'abc' }, 400, /contradict each other/],
    ['an odd name', { Host: '49983-I_D.example.com' }, 400, /lower-case letters and digits/],
  ]
  for (const [name, change, status, message] of malformed) {
    test(`${name} is ${status}`, async () => {
      const headers = Object.entries({ ...envdHeaders(sandbox), ...change })
      const presentHeaders = Object.fromEntries(headers.filter(([, value]) => value !== '-'))
      const call = toProcessCall('Start', presentHeaders, frame(JSON.stringify(shell('true'))))
      const reply = await send(url, call)
      assert.equal(reply.status, status)
      assert.match(status === 502 ? Object(reply.json).message : reply.text, message)
    })
  }
})

const harmless = JSON.stringify(shell('touch /tmp/started'))

suite('headers and method of a process request', () => {
  const malformed: [string, Partial<Call>, Record<string, string>, number, RegExp][] = [
    ['no version', {}, { 'Connect-Protocol-Version': '' }, 400, /Connect-Protocol-Version to 1/],
    ['version 2', {}, { 'Connect-Protocol-Version': '2' }, 400, /Connect-Protocol-Version to 1/],
    ['plain text', {}, { 'Content-Type': 'text/plain' }, 415, /application\/connect\+json/],
    ['unary JSON', {}, { 'Content-Type': 'application/json' }, 415, /application\/connect\+json/],
    ['no type', {}, { 'Content-Type': '' }, 415, /application\/connect\+json/],
    ['PUT', { method: 'PUT' }, {}, 405, /Use POST/],
    ['GET', { method: 'GET', body: '' }, {}, 405, /Use POST/],
    ['an unknown method', { path: '/process.Process/Stop' }, {}, 404, /not found/],
    ['an unknown service', { path: '/process.Processes/Start' }, {}, 404, /not found/],
    ['a wrong token', {}, { 'X-Access-Token': '0'.repeat(64) }, 401, /envdAccessToken/],
    ['an empty token', {}, { 'X-Access-Token': '' }, 401, /envdAccessToken/],
    [
      'no token',
      {},
      { 'X-Access-Token': '-' },
      401,
      /access token .* in the header X-Access-Token/,
    ],
  ]
  for (const [name, change, headers, status, message] of malformed) {
    test(`${name} is ${status}`, async () => {
      const allHeaders = { ...envdHeaders(sandbox), ...headers }
      const presentHeaders = Object.fromEntries(
        Object.entries(allHeaders).filter(([, value]) => value !== '-'),
      )
      const reply = await send(url, {
        ...toProcessCall('Start', presentHeaders, frame(harmless)),
        ...change,
      })
      assert.equal(reply.status, status, reply.text)
      assert.match(reply.text, message)
    })
  }
})

suite('frames', () => {
  const gzip = { 'Connect-Content-Encoding': 'gzip' }
  const malformed: [string, Uint8Array, Record<string, string>, string, RegExp][] = [
    [
      'a giant length',
      falseFrame(0, 0xffff_ffff, '{}'),
      {},
      'resource_exhausted',
      /4294967295 is larger/,
    ],
    ['a truncated frame', falseFrame(0, 100, '{}'), {}, 'invalid_argument', /incomplete envelope/],
    ['a truncated head', Buffer.from([0, 0]), {}, 'invalid_argument', /incomplete envelope/],
    ['no frame', Buffer.alloc(0), {}, 'unimplemented', /missing input message/],
    ['an end frame alone', frame('{}', endFlag), {}, 'unimplemented', /missing input message/],
    ['compression unannounced', frame(harmless, 1), {}, 'invalid_argument', /decompress/],
    ['compression that is none', frame(harmless, 1), gzip, 'invalid_argument', /decompress/],
    [
      'an unknown compression',
      frame(harmless, 1),
      { ...gzip, 'Connect-Content-Encoding': 'lz9' },
      'unimplemented',
      /supported encodings are gzip/,
    ],
    [
      'two requests',
      Buffer.concat([frame(harmless), frame(harmless)]),
      {},
      'unimplemented',
      /extra input message/,
    ],
    ['garbage JSON', frame('{nope'), {}, 'invalid_argument', /cannot decode message/],
    ['an array', frame('[]'), {}, 'invalid_argument', /cannot decode message/],
    [
      'a command of a wrong type',
      frame('{"process":{"cmd":5}}'),
      {},
      'invalid_argument',
      /cmd from JSON: expected string/,
    ],
    [
      'arguments of a wrong type',
      frame('{"process":{"cmd":"a","args":"b"}}'),
      {},
      'invalid_argument',
      /args from JSON/,
    ],
    [
      'a size of a wrong type',
      frame('{"process":{"cmd":"a"},"pty":{"size":{"cols":-1}}}'),
      {},
      'invalid_argument',
      /cols from JSON/,
    ],
    ['no command', frame('{"process":{}}'), {}, 'invalid_argument', /set process\.cmd/],
    ['a NUL', frame('{"process":{"cmd":"a\\u0000"}}'), {}, 'invalid_argument', /NUL/],
    [
      'an odd variable',
      frame('{"process":{"cmd":"a","envs":{"b=":"c"}}}'),
      {},
      'invalid_argument',
      /name of an environment variable/,
    ],
    [
      'a missing folder',
      frame('{"process":{"cmd":"a","cwd":"/nowhere"}}'),
      {},
      'invalid_argument',
      /'\/nowhere' does not exist/,
    ],
    [
      'an unknown user',
      frame(harmless),
      { Authorization: basic('stranger') },
      'unauthenticated',
      /no user 'stranger'/,
    ],
    [
      'a timeout in words',
      frame(harmless),
      { 'Connect-Timeout-Ms': 'soon' },
      'invalid_argument',
      /timeout value: soon/,
    ],
    [
      'a negative timeout',
      frame(harmless),
      { 'Connect-Timeout-Ms': '-1' },
      'invalid_argument',
      /timeout value: -1/,
    ],
    [
      'a huge timeout',
      frame(harmless),
      { 'Connect-Timeout-Ms': '9'.repeat(11) },
      'invalid_argument',
      /timeout value: 9/,
    ],
    [
      'a timeout of zero',
      frame(harmless),
      { 'Connect-Timeout-Ms': '0' },
      'deadline_exceeded',
      /timed out/,
    ],
  ]
  for (const [name, body, headers, code, message] of malformed) {
    test(`${name} ends the stream with ${code}`, async () => {
      const reply = await send(
        url,
        toProcessCall('Start', { ...envdHeaders(sandbox), ...headers }, body),
      )
      assert.equal(reply.status, 200)
      const [endFrame, ...otherFrames] = await Array.fromAsync(framesOf([reply.body]))
      assert.deepEqual([endFrame?.flags, otherFrames], [endFlag, []])
      const { error } = JSON.parse(endFrame?.payload.toString('utf8') ?? '')
      assert.equal(error.code, code)
      assert.match(error.message, message)
    })
  }

  test('no malformed request started a process', async () => {
    const command = frame(JSON.stringify(shell('test ! -e /tmp/started')))
    const { body } = await send(url, toProcessCall('Start', envdHeaders(sandbox), command))
    assert.match(body.toString('utf8'), /"status":"exit status 0"/)
  })
})

/** Encodes a frame with a false length. */
function falseFrame(flags: number, length: number, payload: string): Uint8Array {
  const bytes = frame(payload, flags)
  bytes.writeUInt32BE(length, 1)
  return bytes
}

suite('requests about a process', () => {
  const unknownPid = '{"process":{"pid":999999}}'
  const malformed: [string, string, string, Record<string, string>, number, string, RegExp][] = [
    ['Update', 'garbage', '{nope', {}, 400, 'invalid_argument', /cannot decode message/],
    ['Update', 'nothing', '', {}, 400, 'invalid_argument', /cannot decode message/],
    ['Update', 'a pid in words', '{"process":{"pid":"x"}}', {}, 400, 'invalid_argument', /pid/],
    ['Update', 'a negative pid', '{"process":{"pid":-1}}', {}, 400, 'invalid_argument', /pid/],
    ['Update', 'no selector', '{}', {}, 501, 'unimplemented', /by pid or tag/],
    ['Update', 'an unknown pid', unknownPid, {}, 404, 'not_found', /No process with pid 999999/],
    ['Update', 'an unknown tag', '{"process":{"tag":"x"}}', {}, 404, 'not_found', /No process/],
    [
      'Update',
      'no gzip',
      unknownPid,
      { 'Content-Encoding': 'gzip' },
      400,
      'invalid_argument',
      /decompr/,
    ],
    [
      'Update',
      'no protobuf',
      '\xff',
      { 'Content-Type': 'application/proto' },
      400,
      'invalid_argument',
      /parse binary/,
    ],
    [
      'Update',
      'an unknown user',
      unknownPid,
      { Authorization: basic('stranger') },
      401,
      'unauthenticated',
      /no user 'stranger'/,
    ],
    ['SendInput', 'an unknown pid', unknownPid, {}, 404, 'not_found', /No process/],
    ['SendSignal', 'an unknown pid', unknownPid, {}, 404, 'not_found', /No process/],
    ['CloseStdin', 'an unknown pid', unknownPid, {}, 404, 'not_found', /No process/],
  ]
  for (const [method, name, body, headers, status, code, message] of malformed) {
    test(`${method} with ${name} is ${status}`, async () => {
      const reply = await callProcess(target, method, body, headers)
      assert.deepEqual([reply.status, Object(reply.json).code], [status, code], reply.text)
      assert.match(Object(reply.json).message, message)
    })
  }
})

suite('the server', () => {
  test('refuses request headers of 40 KB', async () => {
    const junk = { 'X-Junk': 'x'.repeat(40_000) }
    checkRefusal(await callProcess(target, 'List', '{}', junk), 431, /16 KiB/)
  })

  test('is healthy afterwards, and has logged no error', () => checkHealth(target))
})
