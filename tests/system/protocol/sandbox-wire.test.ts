import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import {
  SendSignalRequestSchema,
  StartRequestSchema,
  StartResponseSchema,
} from '@atoll/contracts/gen/process/process_pb'
import { waitFor } from '@atoll/kit/wait'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { envdHeaders, envdPort, openProcess, outputOf, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { waitForResponse, startRequest, endFlag, frame, framesOf, open, send } from '../wire.ts'

/** The sandbox API with plain HTTP, as its documents describe it. */

let cloud: HttpCloud
let url: string
let sandbox: HttpSandbox
before(async () => {
  cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor' })
  url = cloud.installation.url
  sandbox = await cloud.createSandbox()
})
after(() => cloud?.[Symbol.asyncDispose]())

const start = (...[body, call]: [object, Parameters<typeof openProcess>[3]?]) =>
  openProcess(url, envdHeaders(sandbox), body, call)

function unary(method: string, body: unknown, headers = envdHeaders(sandbox)) {
  return send(url, {
    method: 'POST',
    path: `/process.Process/${method}`,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

test('Start streams output as base64 and ends with the exit code and an end frame', async () => {
  const stream = await start(shell('echo out; echo err >&2; exit 3'), { user: 'user' })
  assert.ok(stream.pid > 0)
  const messages = await stream.readRemaining()
  const outputs = messages.map(({ event }) => event?.data ?? {})
  assert.deepEqual(
    [
      outputs.map(({ stdout }) => stdout ?? '').join(''),
      outputs.map(({ stderr }) => stderr ?? '').join(''),
    ],
    [Buffer.from('out\n').toString('base64'), Buffer.from('err\n').toString('base64')],
  )
  assert.deepEqual(messages.slice(-2), [
    {
      flags: 0,
      event: {
        end: { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' },
      },
    },
    { flags: endFlag },
  ])
})

test('an exit code of zero is left out', async () => {
  const [end] = await (await start(shell('true'))).readRemaining()
  assert.deepEqual(end, { flags: 0, event: { end: { exited: true, status: 'exit status 0' } } })
})

test('the process has the environment and the folder that the request names', async () => {
  const process = {
    cmd: '/bin/bash',
    args: ['-c', 'echo "$GREETING from $PWD"'],
    envs: { GREETING: 'grüße' },
    cwd: '/usr/lib',
  }
  assert.equal(outputOf(await (await start({ process })).readRemaining()), 'grüße from /usr/lib\n')
})

test('Basic authorization names the user, and without it the default user applies', async () => {
  const whoami = shell('echo "$(id -un) $HOME"')
  const outputs = [
    await start(whoami),
    await start(whoami, { user: 'user' }),
    await start(whoami, { user: 'root' }),
  ].map(async (stream) => outputOf(await stream.readRemaining()))
  assert.deepEqual(await Promise.all(outputs), [
    'user /home/user\n',
    'user /home/user\n',
    'root /root\n',
  ])
})

test('a terminal sends its output as event.data.pty, and Update resizes the terminal', async () => {
  const stream = await start(
    {
      process: { cmd: '/bin/bash', args: ['-c', 'stty size; read -r _; stty size'] },
      pty: { size: { cols: 80, rows: 24 } },
    },
    { user: 'user' },
  )
  const first = await stream.next()
  assert.equal(typeof first?.event?.data?.pty, 'string')
  assert.match(outputOf(first ? [first] : []), /^24 80/)

  const process = { pid: stream.pid }
  const updateReply = await unary('Update', { process, pty: { size: { cols: 101, rows: 31 } } })
  assert.deepEqual([updateReply.status, updateReply.text], [200, '{}'])
  assert.match(updateReply.headers['content-type'] ?? '', /^application\/json/)

  const enter = Buffer.from('\n').toString('base64')
  const inputReply = await unary('SendInput', { process, input: { pty: enter } })
  assert.deepEqual([inputReply.status, inputReply.text], [200, '{}'])
  await stream.readUntil(/31 101/)
  const messages = await stream.readRemaining()
  assert.equal(messages.at(-2)?.event?.end?.status, 'exit status 0')
})

test('the headers work under their E2b names', async () => {
  const stream = await openProcess(url, envdHeaders(sandbox, 'E2b'), shell('echo alias'))
  assert.equal(outputOf(await stream.readRemaining()), 'alias\n')
})

test('a host name {port}-{sandboxID}.{domain} routes to the sandbox', async () => {
  const { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': port, ...headers } = envdHeaders(sandbox)
  const Host = `${port}-${id}.sandboxes.example`
  const stream = await openProcess(url, { ...headers, Host }, shell('echo by name'))
  assert.equal(outputOf(await stream.readRemaining()), 'by name\n')
})

test('Connect-Timeout-Ms ends the stream with deadline_exceeded and kills the process', async () => {
  const stream = await start(shell('exec sleep 1000'), { headers: { 'Connect-Timeout-Ms': '700' } })
  const messages = await stream.readRemaining()
  assert.deepEqual(
    messages.at(-1)?.flags === endFlag && messages.at(-1)?.error?.code,
    'deadline_exceeded',
  )
  await waitFor('the process to be gone', async () => {
    const listReply = await unary('List', {})
    return !Object(listReply.json).processes?.some(({ pid }: { pid: number }) => pid === stream.pid)
  })
  const probe = await start(shell(`kill -0 ${stream.pid} 2>&1 || echo gone`), { user: 'root' })
  assert.match(outputOf(await probe.readRemaining()), /gone/)
})

test('Start and SendSignal in binary', async () => {
  const headers = envdHeaders(sandbox)
  const request = create(StartRequestSchema, {
    process: { cmd: '/bin/bash', args: ['-c', 'printf "\\377\\0"; exec sleep 1000'] },
    stdin: false,
  })
  const response = await open(url, {
    method: 'POST',
    path: '/process.Process/Start',
    headers: { 'Content-Type': 'application/connect+proto', ...headers },
    body: frame(toBinary(StartRequestSchema, request)),
  })
  assert.equal(response.headers['content-type'], 'application/connect+proto')
  const frames = framesOf(response)
  const nextEvent = async () => {
    const { value } = await frames.next()
    assert.equal(value?.flags, 0)
    return fromBinary(StartResponseSchema, value.payload).event?.event
  }
  const startEvent = await nextEvent()
  assert.ok(startEvent?.case === 'start')
  const dataEvent = await nextEvent()
  assert.ok(dataEvent?.case === 'data' && dataEvent.value.output.case === 'stdout')
  assert.deepEqual([...dataEvent.value.output.value], [0xff, 0])

  const selector = { case: 'pid', value: startEvent.value.pid } as const
  const signal = create(SendSignalRequestSchema, { process: { selector }, signal: Signal.SIGKILL })
  const signalReply = await send(url, {
    method: 'POST',
    path: '/process.Process/SendSignal',
    headers: { 'Content-Type': 'application/proto', ...headers },
    body: toBinary(SendSignalRequestSchema, signal),
  })
  assert.deepEqual(
    [signalReply.status, signalReply.headers['content-type'], signalReply.body.length],
    [200, 'application/proto', 0],
  )
  const endEvent = await nextEvent()
  assert.ok(endEvent?.case === 'end')
  assert.deepEqual([endEvent.value.exitCode, endEvent.value.status], [-1, 'signal: killed'])
  const lastFrame = (await frames.next()).value
  assert.deepEqual([lastFrame?.flags, lastFrame?.payload.toString()], [endFlag, '{}'])
})

test('two subscribers see the same output and the same end', async () => {
  const firstStream = await start({ process: { cmd: '/bin/cat' }, stdin: true, tag: 'shared' })
  const secondStream = await openProcess(
    url,
    envdHeaders(sandbox),
    { process: { tag: 'shared' } },
    { method: 'Connect' },
  )
  assert.equal(secondStream.pid, firstStream.pid)
  const process = { pid: firstStream.pid }
  const stdin = Buffer.from('to both\n').toString('base64')
  assert.equal((await unary('SendInput', { process, input: { stdin } })).status, 200)
  await Promise.all([firstStream.readUntil(/to both\n/), secondStream.readUntil(/to both\n/)])
  assert.equal((await unary('CloseStdin', { process })).status, 200)
  const ends = await Promise.all([firstStream.readRemaining(), secondStream.readRemaining()])
  const expected = [
    { flags: 0, event: { end: { exited: true, status: 'exit status 0' } } },
    { flags: endFlag },
  ]
  assert.deepEqual(ends, [expected, expected])
})

test("envd's /health needs no token, and /init is hidden", async () => {
  const route = {
    'Svc-Sandbox-Id': sandbox.sandboxID,
    'Svc-Sandbox-Port': String(envdPort),
  }
  const health = await send(url, { path: '/health', headers: route })
  assert.deepEqual([health.status, health.text], [204, ''])
  const init = await send(url, { method: 'POST', path: '/init', headers: route, body: '{}' })
  assert.deepEqual(
    [init.status, Object(init.json).code, Object(init.json).path],
    [404, 404, '/init'],
  )
})

test('a closed port and an unknown sandbox are 502 with their JSON', async () => {
  const { sandboxID } = sandbox
  const closedReply = await send(url, {
    path: '/',
    headers: { 'Svc-Sandbox-Id': sandboxID, 'Svc-Sandbox-Port': '9' },
  })
  const { message, ...fields } = Object(closedReply.json)
  assert.deepEqual(
    [closedReply.status, fields],
    [502, { sandboxId: sandboxID, port: 9, code: 502 }],
  )
  assert.match(message, /nothing answers on its port 9/)

  const unknownReply = await send(url, {
    path: '/health',
    headers: { 'Svc-Sandbox-Id': 'i00000000000000000000', 'Svc-Sandbox-Port': String(envdPort) },
  })
  assert.equal(unknownReply.status, 502)
  assert.match(unknownReply.headers['content-type'] ?? '', /^application\/json/)
  assert.deepEqual(unknownReply.json, {
    sandboxId: 'i00000000000000000000',
    message: 'The sandbox was not found',
    code: 502,
  })
})

const echoServer = `
const server = require('http').createServer((request, response) => {
  response.writeHead(200, { 'X-Path': request.url })
  response.flushHeaders()
  request.pipe(response)
})
server.listen(8000, () => console.log('listening'))
`

test("a user's server streams both ways", async () => {
  const stream = await start({ process: { cmd: 'node', args: ['-e', echoServer] }, stdin: false })
  await stream.readUntil(/listening/)
  const outgoing = startRequest(url, {
    method: 'POST',
    path: '/echo?x=%2F',
    headers: { Host: `8000-${sandbox.sandboxID}.localhost`, 'Transfer-Encoding': 'chunked' },
  })
  const pendingResponse = waitForResponse(outgoing)
  outgoing.write('one')
  const response = await pendingResponse
  assert.deepEqual([response.statusCode, response.headers['x-path']], [200, '/echo?x=%2F'])
  // Each chunk returns before the next is sent, so no part between client and server buffers chunks.
  const pieces = response.setEncoding('utf8')[Symbol.asyncIterator]()
  assert.equal((await pieces.next()).value, 'one')
  outgoing.write('two')
  assert.equal((await pieces.next()).value, 'two')
  outgoing.end()
  assert.equal((await pieces.next()).done, true)
  const kill = { process: { pid: stream.pid }, signal: 'SIGNAL_SIGKILL' }
  assert.deepEqual((await unary('SendSignal', kill)).json, {})
})
