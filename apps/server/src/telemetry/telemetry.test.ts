import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { z } from 'zod'
import { loadServerConfig } from '../config.ts'
import { startServer } from '../server.ts'

async function setup(t: TestContext, env: Record<string, string>) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-telemetry-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) })
  const node = simulateNode(() => '127.0.0.2')
  const server = await startServer(
    loadServerConfig({ ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: '127.0.0.1:0', ...env }),
    { log, startNode: async () => ({ transport: node.transport, async close() {} }) },
  )
  t.after(() => server.close())
  const headers = { 'X-API-Key': server.firstCredentials?.apiKey ?? '' }
  const call = (method: string, path: string, body?: object, more: object = {}) =>
    fetch(`${server.apiUrl}${path}`, {
      method,
      headers: { ...headers, ...more, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
  const create = async () => {
    const reply = await call('POST', '/sandboxes', { templateID: 'base' })
    const body: unknown = await reply.json()
    assert.ok(typeof body === 'object' && body !== null && 'sandboxID' in body)
    return String(body.sandboxID)
  }
  const logged = (event: string) =>
    waitFor(`a log line of ${event}`, () =>
      lines.map((line) => JSON.parse(line)).findLast((line) => line.event === event),
    )
  return { server, call, create, logged }
}

/** Serves 11 bytes where the simulated node says that the sandbox is. */
async function serveInSandbox(t: TestContext): Promise<number> {
  const program = createServer((_, res) => void res.end('from inside')).listen(0, '127.0.0.2')
  await once(program, 'listening')
  t.after(() => program.close())
  const address = program.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

test('a request is traced over the node, continues the trace of its caller, and is sampled', async (t) => {
  const batches: unknown[] = []
  const collector = createServer((req, res) => {
    const receive = async () => {
      batches.push({ path: req.url, key: req.headers['api-key'], body: await json(req) })
      res.end('{}')
    }
    receive().catch(() => res.destroy())
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  t.after(() => collector.close())
  const address = collector.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const { server, create, call, logged } = await setup(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20b',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
  })
  const id = await create()
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const traced = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  await call('DELETE', `/sandboxes/${id}`, undefined, traced)
  await call('GET', '/sandboxes/unsampled', undefined, {
    traceparent: `00-${'b'.repeat(32)}-00f067aa0ba902b7-00`,
  })
  await logged('sandbox.get')
  await server.close() // sends what is left
  const [first] = batches
  const { path, key, body } = Batch.parse(first)
  assert.deepEqual([path, key, batches.length], ['/v1/traces', 'a b', 1])
  const [{ resource, scopeSpans } = { resource: undefined, scopeSpans: [] }] = body.resourceSpans
  assert.deepEqual(
    resource?.attributes.map((pair) => [pair.key, pair.value.stringValue]),
    [
      ['deployment.environment', 'test'],
      ['service.name', 'atoll'],
    ],
  )
  const spans = scopeSpans.flatMap((scope) => scope.spans)
  const created = spans.find(({ name }) => name === 'sandbox.create')
  const onNode = spans.find(({ name }) => name === 'node.CreateSandbox')
  assert.equal(onNode?.parentSpanId, created?.spanId)
  assert.equal(onNode?.traceId, created?.traceId)
  const sandbox = created?.attributes.find((pair) => pair.key === 'atoll.sandbox')
  assert.equal(sandbox?.value.stringValue, id)
  const ended = spans.find(({ name }) => name === 'sandbox.kill')
  assert.deepEqual([ended?.traceId, ended?.parentSpanId], [traceId, '00f067aa0ba902b7'])
  assert.ok(!spans.some((span) => span.traceId.startsWith('bbb')))
})

const Attributes = z.array(
  z.object({ key: z.string(), value: z.object({ stringValue: z.string().optional() }) }),
)
const Batch = z.object({
  path: z.string(),
  key: z.string(),
  body: z.object({
    resourceSpans: z.array(
      z.object({
        resource: z.object({ attributes: Attributes }),
        scopeSpans: z.array(
          z.object({
            spans: z.array(
              z.object({
                name: z.string(),
                traceId: z.string(),
                spanId: z.string(),
                parentSpanId: z.string().optional(),
                attributes: Attributes,
              }),
            ),
          }),
        ),
      }),
    ),
  }),
})

const metricsOn = { ATOLL_METRICS_LISTEN: '127.0.0.1:0', ATOLL_EDGE_ACCESS_LOG: 'on' }

test('metrics count operations, faults, store, node and edge, without IDs', async (t) => {
  const { server, call, create } = await setup(t, metricsOn)
  const id = await create()
  assert.equal((await call('GET', '/sandboxes/nosuchsandbox0000000')).status, 404)
  const port = await serveInSandbox(t)
  const headers = { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': String(port) }
  const inside = await fetch(`${server.sandboxUrl}/x?signature=secret`, { headers })
  assert.equal(await inside.text(), 'from inside')
  const scrape = async () => (await fetch(server.metricsUrl ?? '')).text()
  const seen = await waitFor('the request in the metrics', async () => {
    const found = await scrape()
    return /^atoll_edge_requests_total\{kind="request",status="2xx"\} 1$/m.test(found) && found
  })
  for (const line of [
    /^atoll_api_request_duration_seconds_count\{operation="sandbox\.create",status="2xx"\} 1$/m,
    /^atoll_api_request_duration_seconds_count\{operation="sandbox\.get",status="4xx"\} 1$/m,
    /^atoll_api_faults_total\{reason="sandbox_not_found"\} 1$/m,
    /^atoll_store_query_duration_seconds_count\{kind="insert",outcome="ok"\} [1-9]/m,
    /^atoll_node_call_duration_seconds_count\{name="CreateSandbox",outcome="ok"\} 1$/m,
    /^atoll_sandboxes\{state="running"\} 1$/m,
    /^atoll_node_up 1$/m,
    /^nodejs_eventloop_lag_p99_seconds /m,
    /^atoll_edge_bytes_total\{direction="sent"\} [1-9]/m,
  ]) {
    assert.match(seen, line)
  }
  assert.ok(!seen.includes(id) && !seen.includes('127.0.0.2'))
})

test('the metrics listener refuses names of web pages, other paths and methods', async (t) => {
  const { server } = await setup(t, metricsOn)
  const url = server.metricsUrl ?? ''
  const statusOf = async (path: string, options: object) => {
    const [reply]: IncomingMessage[] = await once(get(new URL(path, url), options), 'response')
    reply?.resume()
    return reply?.statusCode
  }
  assert.equal(await statusOf('/metrics', { headers: { host: 'evil.example:9464' } }), 403)
  assert.equal(await statusOf('/other', {}), 404)
  assert.equal(await statusOf('/metrics', { method: 'DELETE' }), 405)
  assert.equal(await statusOf('/metrics', {}), 200)
})

for (const address of ['0.0.0.0:9464', '192.0.2.1:9464', '127.example.com:9464']) {
  test(`metrics on ${address} are refused`, () => {
    const env = { ATOLL_METRICS_LISTEN: address }
    assert.throws(() => loadServerConfig(env), /must be a loopback address/)
  })
}

test('the request log names team, sandbox, operation, status, reason and duration', async (t) => {
  const { call, create, logged } = await setup(t, {})
  const id = await create()
  const { teamId, sandboxId, status, durationMs } = await logged('sandbox.create')
  assert.deepEqual([sandboxId, status, typeof durationMs], [id, 201, 'number'])
  assert.match(teamId, /^[0-9a-f-]{36}$/)
  await call('GET', '/sandboxes/nosuchsandbox0000000')
  const refused = await logged('sandbox.get')
  assert.deepEqual(
    [refused.teamId, refused.sandboxId, refused.status, refused.reason],
    [teamId, 'nosuchsandbox0000000', 404, 'sandbox_not_found'],
  )
})

test('the access log of the edge names the sandbox, but no query', async (t) => {
  const { server, create, logged } = await setup(t, { ATOLL_EDGE_ACCESS_LOG: 'on' })
  const id = await create()
  const port = await serveInSandbox(t)
  const headers = { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': String(port) }
  const request = get(`${server.sandboxUrl}/file?signature=secret`, { headers })
  const [incoming]: IncomingMessage[] = await once(request, 'response')
  if (incoming) await text(incoming)
  const { level: _, time: _time, msg: _msg, ...line } = await logged('edge.access')
  const { durationMs, bytesReceived, bytesSent, ...rest } = line
  assert.deepEqual(rest, {
    part: 'edge',
    event: 'edge.access',
    kind: 'request',
    method: 'GET',
    path: '/file',
    client: '127.0.0.1',
    status: 200,
    sandboxId: id,
    port,
  })
  assert.ok(durationMs >= 0 && bytesReceived > 30 && bytesSent > 11)
})

test('settings of OpenTelemetry that have no effect do not keep the server from starting', () => {
  for (const env of [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: 'true' },
  ]) {
    const { server } = loadServerConfig({ ...env, OTEL_TRACES_SAMPLER: 'xray' })
    assert.equal(server.OTEL_EXPORTER_OTLP_ENDPOINT, undefined)
  }
  const wrong = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    OTEL_TRACES_SAMPLER: 'xray',
  }
  assert.throws(() => loadServerConfig(wrong), /OTEL_TRACES_SAMPLER/)
})
