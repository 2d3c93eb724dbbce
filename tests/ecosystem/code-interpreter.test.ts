/** The published package @e2b/code-interpreter, unmodified, on a template of the catalogue. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, before, suite, test } from 'node:test'
import { outputOf, tryRun } from '@atoll/kit/run'
import { atoll, install } from '@atoll/system-tests/installation'
import type { Installation } from '@atoll/system-tests/installation'
import { Sandbox, TimeoutError } from '@e2b/code-interpreter'
import type { Context } from '@e2b/code-interpreter'

/** Installing the template takes minutes where its layer is not cached. */
const installLimitMs = 1_200_000
const timeoutMs = 600_000
/** The package leaves the timer of a failed request running, which delays the end of this process. */
const shortTimeout = { requestTimeoutMs: 20_000 }

/**
 * Takes memory at a pace, and slower near the end. Code that takes it at once races the memory guard, which a busy
 * machine may run too late.
 */
const takeAllMemory = `
import time
held = []
while True:
    held.append(b"x" * (2 << 20))
    available = next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
    time.sleep(0.05 if int(available.split()[1]) < 300_000 else 0.001)`

suite('the code interpreter package on gvisor', () => {
  let installation: Installation
  /** Shared by the tests that do not change its state. */
  let sandbox: Sandbox

  before(async () => {
    // 20 kernels take 800 MB.
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '1536' })
  })
  after(() => installation[Symbol.asyncDispose]())

  async function create(options: object = {}): Promise<Sandbox> {
    return Sandbox.create({ ...installation.connection, timeoutMs, ...options })
  }

  test('the command line installs the template and shows progress', async () => {
    const { url, apiKey, env } = installation
    const options = {
      env: { ...env, ATOLL_API_URL: url, ATOLL_API_KEY: apiKey },
      timeoutMs: installLimitMs,
    }
    const args = ['template', 'install', 'code-interpreter']
    const result = await tryRun(atoll, args, options)
    assert.equal(outputOf(atoll, args, result), 'code-interpreter-v1\n')
    assert.match(result.stderr, /\d+ % code-interpreter: /)
    const catalogue = await tryRun(atoll, ['template', 'catalogue', '--json'], options)
    assert.equal(JSON.parse(catalogue.stdout)[0].state, 'installed')
  })

  test("the README's first example", async () => {
    sandbox = await create({ envs: { GIVEN: 'at create' } })
    await sandbox.runCode('x = 1')
    const execution = await sandbox.runCode('x+=1; x')
    assert.equal(execution.text, '2')
  })

  test('a chart has an image and its data', async () => {
    const { results, error } = await sandbox.runCode(
      'import matplotlib.pyplot as plt\nplt.bar(["a", "b"], [1, 2])\nplt.title("Bars")\nplt.show()',
    )
    assert.equal(error, undefined)
    const [result] = results
    const picture = Buffer.from(result?.png ?? '', 'base64')
    assert.equal(picture.subarray(1, 4).toString(), 'PNG')
    const { type, title, elements } = result?.chart ?? assert.fail('the chart is missing')
    assert.deepEqual([type, title, elements.length], ['bar', 'Bars', 2])
  })

  test('a data frame has an HTML table and its columns', async () => {
    const code = 'import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]})'
    const [result] = (await sandbox.runCode(code)).results
    assert.deepEqual(result?.data, { a: [1, 2], b: ['x', null] })
    assert.match(result?.html ?? '', /<table/)
  })

  test('output arrives while the code runs', async () => {
    const code = `
import os, time
print('begun')
while not os.path.exists('/tmp/continue'): time.sleep(0.01)
print('ended')`
    const lines: string[] = []
    const { logs } = await sandbox.runCode(code, {
      async onStdout({ line }) {
        lines.push(line)
        if (lines.length === 1) await sandbox.files.write('/tmp/continue', '')
      },
    })
    assert.equal(lines.join(''), 'begun\nended\n')
    assert.equal(logs.stdout.join(''), 'begun\nended\n')
  })

  test('50 MB of output arrive in full, and the server does not hold them', async () => {
    const earlierPeak = await peakMemoryMb(installation.pid())
    const code = `
import hashlib, sys
digest = hashlib.sha256()
for number in range(500_000):
    line = f'{number:098d}\u00fc\\n'
    digest.update(line.encode())
    sys.stdout.write(line)
digest.hexdigest()`
    const { logs, text } = await sandbox.runCode(code, { timeoutMs: 0 })
    const output = logs.stdout.join('')
    assert.equal(output.length, 50_000_000)
    assert.equal(text, createHash('sha256').update(output).digest('hex'))
    const growth = (await peakMemoryMb(installation.pid())) - earlierPeak
    assert.ok(growth < 40, `the server grew by ${growth} MB`)
  })

  test('an error has a name, a value and a traceback', async () => {
    const { error, results } = await sandbox.runCode('1 / 0')
    assert.deepEqual([error?.name, error?.value], ['ZeroDivisionError', 'division by zero'])
    assert.match(error?.traceback ?? '', /1 \/ 0/)
    assert.deepEqual(results, [])
  })

  test('JavaScript, TypeScript and bash keep their own state', async () => {
    const cases = [
      ['js', 'globalThis.a = 20; 0', 'a + 1', '21'],
      ['ts', 'const b: number = 30; 0', 'b + 1', '31'],
    ] as const
    for (const [language, first, second, expected] of cases) {
      await sandbox.runCode(first, { language })
      assert.equal((await sandbox.runCode(second, { language })).text, expected, language)
    }
    await sandbox.runCode('c=40', { language: 'bash' })
    const { logs } = await sandbox.runCode('echo $((c + 1))', { language: 'bash' })
    assert.equal(logs.stdout.join(''), '41\n')
  })

  test('a language without a kernel is refused with advice', async () => {
    for (const [language, advice] of [
      ['java', /400 .*default-jdk/],
      ['cobol', /400 .*Use one of: bash, javascript, python, r, typescript/],
    ] as const) {
      await assert.rejects(sandbox.runCode('1', { language, ...shortTimeout }), advice)
    }
  })

  test('contexts have their own variables and folder, and can be restarted and removed', async () => {
    const context = await sandbox.createCodeContext({ cwd: '/tmp' })
    assert.deepEqual([context.language, context.cwd], ['python', '/tmp'])
    await sandbox.runCode('own = 1; import os', { context })
    assert.equal((await sandbox.runCode('os.getcwd()', { context })).text, '/tmp')
    assert.equal((await sandbox.runCode('own')).error?.name, 'NameError')
    const ids = (await sandbox.listCodeContexts()).map(({ id }) => id)
    assert.ok(ids.includes(context.id))
    await sandbox.restartCodeContext(context)
    assert.equal((await sandbox.runCode('own', { context })).error?.name, 'NameError')
    await sandbox.removeCodeContext(context)
    await assert.rejects(sandbox.runCode('1', { context, ...shortTimeout }), /not found/)
  })

  test('1,000 executions in 20 contexts all end, in order, and none is lost', async () => {
    const ownSandbox = await create()
    const contexts: Context[] = []
    for (let number = 0; number < 20; number += 1) {
      contexts.push(await ownSandbox.createCodeContext())
    }
    await Promise.all(
      contexts.map(async (context, number) => {
        await ownSandbox.runCode(`count = ${number * 1000}`, { context })
        for (let executions = 1; executions < 50; executions += 1) {
          const { text, error } = await ownSandbox.runCode('count += 1\ncount', { context })
          assert.equal(text, String(number * 1000 + executions), error?.value)
        }
      }),
    )
    await ownSandbox.kill()
  })

  test('concurrent executions in one context all end, one after the other', async () => {
    const context = await sandbox.createCodeContext()
    await sandbox.runCode('seen = []; depth = 0', { context })
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    const code = (n: number) => `depth += 1; assert depth == 1; seen.append(${n}); depth -= 1`
    const runs = await Promise.all(numbers.map((n) => sandbox.runCode(code(n), { context })))
    assert.deepEqual(runs.map(({ error }) => error?.name).filter(Boolean), [])
    const { text } = await sandbox.runCode('sorted(seen) == list(range(20))', { context })
    assert.equal(text, 'True')
    await sandbox.removeCodeContext(context)
  })

  test('variables of the sandbox and of one execution are set', async () => {
    const code = "import os; os.environ.get('GIVEN'), os.environ.get('ONCE')"
    const execution = await sandbox.runCode(code, { envs: { ONCE: 'now' } })
    assert.equal(execution.text, "('at create', 'now')")
    assert.equal((await sandbox.runCode(code)).text, "('at create', None)")
  })

  test('code past its timeout is interrupted and keeps its variables', async () => {
    await sandbox.runCode('kept = 5')
    const endlessRun = sandbox.runCode('while True: pass', { timeoutMs: 1_000 })
    await assert.rejects(endlessRun, TimeoutError)
    assert.equal((await sandbox.runCode('kept')).text, '5')
  })

  test('a kernel that dies is replaced', async () => {
    const { error } = await sandbox.runCode('import os; os._exit(3)')
    assert.equal(error?.name, 'KernelDied')
    assert.equal((await sandbox.runCode('1 + 1')).text, '2')
  })

  test('a kernel that takes all memory ends, and other kernels keep their state', async () => {
    const ownSandbox = await create()
    const context = await ownSandbox.createCodeContext()
    await ownSandbox.runCode('kept = 6', { context })
    const inChild = `import subprocess, sys; subprocess.run([sys.executable, "-c", ${JSON.stringify(takeAllMemory)}])`
    for (const code of [takeAllMemory, inChild]) {
      const { error } = await ownSandbox.runCode(code, { timeoutMs: 0 })
      assert.equal(error?.name, 'KernelDied')
      assert.match(error.value, /ran out of memory/)
      assert.equal((await ownSandbox.runCode('1 + 1')).text, '2')
    }
    assert.equal((await ownSandbox.runCode('kept', { context })).text, '6')
    await ownSandbox.kill()
  })

  test('a pause in mid-execution keeps the kernel, its variables and its threads', async () => {
    const ownSandbox = await create()
    await ownSandbox.runCode(`
import threading, time
count = 0
def work():
    global count
    while True:
        count += 1
        time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()`)
    const firstOutput = Promise.withResolvers<void>()
    const interruptedRun = ownSandbox.runCode('print("begun")\nwhile True: time.sleep(0.01)', {
      onStdout: () => firstOutput.resolve(),
      timeoutMs: 0,
    })
    const outcome = interruptedRun.then(
      () => 'ended',
      () => 'connection lost',
    )
    await firstOutput.promise
    await ownSandbox.pause()
    await ownSandbox.connect()
    assert.equal(await outcome, 'connection lost')
    const countAfterResume = Number((await ownSandbox.runCode('count')).text)
    const code = `while count <= ${countAfterResume}: time.sleep(0.01)\ncount > ${countAfterResume}`
    assert.equal((await ownSandbox.runCode(code)).text, 'True')
    await ownSandbox.kill()
  })

  test('four forks have their own copies of the state', async () => {
    const ownSandbox = await create()
    await ownSandbox.runCode('value = 100')
    const context = await ownSandbox.createCodeContext()
    await ownSandbox.runCode('value = 200', { context })
    const forks = await ownSandbox.fork({ count: 4, timeoutMs: 600_000 })
    assert.equal(forks.length, 4)
    const texts = await Promise.all(
      forks.map(async (fork, number) => {
        assert.ok(fork instanceof Sandbox, fork instanceof Error ? fork.message : '')
        await fork.runCode(`value += ${number}`)
        await fork.runCode(`value += ${number}`, { context })
        const sums = [await fork.runCode('value'), await fork.runCode('value', { context })]
        await fork.kill()
        return sums.map(({ text }) => text)
      }),
    )
    assert.deepEqual(texts, [
      ['100', '200'],
      ['101', '201'],
      ['102', '202'],
      ['103', '203'],
    ])
    assert.equal((await ownSandbox.runCode('value')).text, '100')
    await ownSandbox.kill()
  })
})

test('on runc the package works too', async () => {
  await using installation = await install({ ATOLL_RUNTIME: 'runc' })
  const limits = { timeoutMs, requestTimeoutMs: installLimitMs }
  const sandbox = await Sandbox.create({ ...installation.connection, ...limits })
  await sandbox.runCode('x = 1')
  assert.equal((await sandbox.runCode('x+=1; x')).text, '2')
  await sandbox.kill()
})

async function peakMemoryMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]) / 1024
}
