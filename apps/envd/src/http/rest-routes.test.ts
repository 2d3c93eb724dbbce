import assert from 'node:assert/strict'
import { test } from 'node:test'
import { send, setUpFiles } from '../testing/file-requests.ts'
import { accessToken, runEnvd } from '../testing/running-envd.ts'

test('metrics report limits and usage of the sandbox', async (t) => {
  const { envd } = await setUpFiles(t)
  await envd.init({ accessToken, cpuCount: 2, memoryMb: 16 * 1024 * 1024 })
  const { status, headers, text } = await send(envd, '/metrics')
  assert.equal(status, 200)
  assert.match(String(headers['content-type']), /^application\/json/)
  const metrics: Record<string, number> = JSON.parse(text)
  assert.deepEqual(Object.keys(metrics).toSorted(), [
    'cpu_count',
    'cpu_used_pct',
    'disk_total',
    'disk_used',
    'mem_cache',
    'mem_total',
    'mem_total_mib',
    'mem_used',
    'mem_used_mib',
    'ts',
  ])
  const { mem_total: total = 0, mem_used: used = 0, ts = 0 } = metrics
  assert.ok(Math.abs(ts - Date.now() / 1000) < 10)
  assert.equal(metrics['cpu_count'], 2)
  assert.ok(total > used && used > 0)
  assert.equal(metrics['mem_total_mib'], Math.floor(total / 1024 / 1024))
  assert.ok((metrics['disk_total'] ?? 0) > (metrics['disk_used'] ?? 0))
})

test('metrics use the memory limit if the kernel shows more', async (t) => {
  const { envd } = await setUpFiles(t)
  await envd.init({ accessToken, memoryMb: 256 })
  const metrics = JSON.parse((await send(envd, '/metrics')).text)
  assert.equal(metrics.mem_total, 256 * 1024 * 1024)
  assert.ok(metrics.mem_used > 0 && metrics.mem_used <= metrics.mem_total)
})

test("/envs returns the variables of every process, with the platform's taking precedence", async (t) => {
  const { envd } = await setUpFiles(t)
  const envVars = { A: '1', E2B_SANDBOX: 'no' }
  await envd.init({ accessToken, envVars, sandboxId: 'isandbox', templateId: 'base' })
  const { status, text } = await send(envd, '/envs')
  assert.equal(status, 200)
  assert.deepEqual(JSON.parse(text), {
    A: '1',
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: 'isandbox',
    E2B_TEMPLATE_ID: 'base',
  })
})

test('routes reject other methods, and all but /health need the token', async () => {
  await using envd = await runEnvd()
  const routes: [string, string, number][] = [
    ['PUT', '/files', 405],
    ['DELETE', '/files', 405],
    ['GET', '/files/compose', 405],
    ['POST', '/metrics', 405],
    ['POST', '/envs', 405],
    ['GET', '/files/', 404],
    ['GET', '/Files', 404],
    ['GET', '/files/compose/', 404],
  ]
  for (const [method, path, status] of routes) {
    const reply = await send(envd, path, { method })
    assert.deepEqual([path, reply.status], [path, status])
    if (status === 405) assert.ok(reply.headers.allow)
    assert.equal((await fetch(`${envd.url}${path}`, { method })).status, 401)
  }
  for (const path of ['/metrics', '/envs', '/files/compose']) {
    assert.equal((await fetch(`${envd.url}${path}?signature=x`)).status, 401)
  }
})

test('CORS covers every endpoint', async () => {
  await using envd = await runEnvd()
  for (const path of ['/files', '/files/compose', '/metrics', '/envs', '/health', '/nothing']) {
    const reply = await send(envd, path, { headers: { origin: 'https://a.example' } })
    assert.equal(reply.headers['access-control-allow-origin'], '*', path)
    assert.match(String(reply.headers['access-control-expose-headers']), /Location/)
  }
})
