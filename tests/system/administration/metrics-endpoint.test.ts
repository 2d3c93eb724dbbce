/** Reads the metrics endpoint again and again while sandboxes are created, used, paused, resumed and killed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import { shell } from '../shell.ts'

const workers = 3
const sandboxesPerWorker = 3

test('metrics answer during load, never count backwards, and agree with it in the end', async () => {
  const metrics = `127.0.0.1:${await freePort()}`
  await using installation = await install({
    ATOLL_RUNTIME: 'gvisor',
    ATOLL_BASE_MEMORY_MB: '256',
    ATOLL_METRICS_LISTEN: metrics,
  })
  const { connection } = installation
  const scrape = async () => {
    const reply = await fetch(`http://${metrics}/metrics`)
    assert.equal(reply.status, 200)
    return parse(await reply.text())
  }
  const useSandboxes = async () => {
    for (let done = 0; done < sandboxesPerWorker; done += 1) {
      const sandbox = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
      assert.equal((await shell(sandbox, 'echo hello')).stdout, 'hello\n')
      await sandbox.pause()
      await sandbox.connect({ timeoutMs: 600_000 })
      await sandbox.kill()
    }
  }
  let last = await scrape()
  let isLoaded = true
  const load = Promise.all(Array.from({ length: workers }, useSandboxes)).finally(() => {
    isLoaded = false
  })
  let scrapes = 0
  const watch = async () => {
    while (isLoaded) {
      const next = await scrape()
      for (const [name, value] of last) {
        if (isCounter(name)) assert.ok((next.get(name) ?? 0) >= value, `${name} went down`)
      }
      assert.equal(next.get('atoll_node_up'), 1)
      scrapes += 1
      last = next
    }
  }
  await Promise.all([load, watch()])
  assert.ok(scrapes > 0)

  const total = workers * sandboxesPerWorker
  const count = (operation: string) =>
    `atoll_api_request_duration_seconds_count{operation="${operation}",status="2xx"}`
  const ended = await waitFor('all requests to be counted', async () => {
    const found = await scrape()
    const isComplete = ['sandbox.createV2', 'sandbox.pause', 'sandbox.kill'].every(
      (operation) => found.get(count(operation)) === total,
    )
    return isComplete && found.get('atoll_sandboxes{state="running"}') === 0 && found
  })
  assert.equal(ended.get('atoll_sandboxes{state="paused"}'), 0)
  assert.ok((ended.get('atoll_edge_requests_total{kind="request",status="2xx"}') ?? 0) >= total)
  assert.ok(
    (ended.get('atoll_store_query_duration_seconds_count{kind="insert",outcome="ok"}') ?? 0) > 0,
  )
})

/** Values by name with labels. */
function parse(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const match = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line)
      assert.ok(match, `not in the Prometheus format: ${line}`)
      return [match[1] ?? '', Number(match[2])]
    }),
  )
}

function isCounter(name: string): boolean {
  return /^atoll_\w+_(?:total|count|bucket|sum)(?:\{|$)/.test(name)
}
