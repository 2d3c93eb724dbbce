import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { runProgram } from './sim/run-cli.ts'
import { setupCloud } from './sim/setup.ts'

const mistakes = [
  [[], /Usage: atoll/],
  [['bogus'], /unknown command 'bogus'/],
  [['sandbox'], /Usage: atoll sandbox/],
  [['sandbox', 'create', '--timeout', 'soon'], /number of seconds/],
  [['sandbox', 'create', '--env', 'novalue'], /name=value/],
  [['sandbox', 'list', '--state', 'asleep'], /running, paused/],
  [['sandbox', 'exec', 'iabc'], /missing required argument 'command'/],
  [['sandbox', 'fork', 'iabc', '--count', '0'], /whole number/],
  [['sandbox', 'pause'], /missing required argument 'ids'/],
  [['snapshot'], /Usage: atoll snapshot/],
  [['sandbox', 'open', 'iabc', '99999'], /port from 1 to 65535/],
  [['sandbox', 'cp', 'a', 'b'], /Exactly one of source and target/],
  [['sandbox', 'cp', 'iabc:a', 'iabc:b'], /Exactly one of source and target/],
  [['sandbox', 'cp', '--max-size', 'much', 'iabc:a', 'b'], /size such as/],
  [['sandbox', 'logs', 'iabc', '--level', 'loud'], /debug, info, warn, error/],
  [['template', 'build'], /required option '-n, --name/],
  [['template', 'tag', '--delete', 'x'], /Missing tags/],
  [['key', 'create'], /missing required argument 'name'/],
] as const

for (const [args, message] of mistakes) {
  test(`"atoll ${args.join(' ')}" is a usage error`, async () => {
    const { code, stdout, stderr } = await runProgram(args, {})
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, message)
  })
}

test('--help succeeds and prints to stdout', async () => {
  const { code, stdout, stderr } = await runProgram(['sandbox', 'exec', '--help'], {})
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /Examples:/)
})

test('without a server the error says how to start it', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  await new Promise((resolve) => server.close(resolve))
  const url = `http://127.0.0.1:${address.port}`
  const env = { ATOLL_API_URL: url, ATOLL_API_KEY: 'e2b_x' }
  const { code, stderr } = await runProgram(['sandbox', 'list'], env)
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`^error: no server at ${url}: start it with \`npm start\`\\n`))
})

test('an unknown API key is reported with a hint', async (t) => {
  const { env } = await setupCloud(t)
  const { code, stderr } = await runProgram(['sandbox', 'list'], { ...env, ATOLL_API_KEY: 'e2b_x' })
  assert.equal(code, 1)
  assert.match(stderr, /^error: Invalid API key\nhint: check ATOLL_API_KEY/)
})

test('an invalid variable is named, without a stack trace', async () => {
  const { code, stderr } = await runProgram(['sandbox', 'list'], { ATOLL_API_URL: 'localhost' })
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^error: Invalid configuration in environment variables:\n.*\n.*ATOLL_API_URL\n$/,
  )
})
