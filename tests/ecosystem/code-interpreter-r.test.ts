/** R by the published package @e2b/code-interpreter, unmodified. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { install } from '@atoll/system-tests/installation'
import type { Installation } from '@atoll/system-tests/installation'
import { Sandbox, TimeoutError } from '@e2b/code-interpreter'
import type { Execution, RunCodeOpts, SandboxOpts } from '@e2b/code-interpreter'
import { readPng } from './png.ts'

/** The first create installs the template, which takes minutes where its layer is not cached. */
const requestTimeoutMs = 600_000
const timeoutMs = 600_000

suite('R by the code interpreter package on gvisor', () => {
  let installation: Installation
  /** Shared by the tests. */
  let sandbox: Sandbox

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor' })
    sandbox = await createInstalled({
      ...{ ...installation.connection, timeoutMs, requestTimeoutMs },
      envs: { GIVEN: 'at create' },
    })
  })
  after(() => installation[Symbol.asyncDispose]())

  test('variables stay, and the last value is the result', async () => {
    await succeed(sandbox, 'x <- 1')
    const { text, results } = await succeed(sandbox, 'x <- x + 1; x')
    assert.deepEqual([text, results.length], ['[1] 2', 1])
    assert.deepEqual((await succeed(sandbox, 'invisible(5)')).results, [])
    // Each visible value is a result, as at R's own prompt.
    const { results: several } = await succeed(sandbox, '"Größe"\nNULL\nlist(1)')
    assert.deepEqual(
      several.map((result) => [result.text, result.isMainResult]),
      [
        ['[1] "Größe"', false],
        ['NULL', false],
        ['[[1]]\n[1] 1\n', true],
      ],
    )
  })

  test('output arrives while the code runs, and warnings and messages on stderr', async () => {
    const code = `
cat('begun\\n')
message('noted')
while (!file.exists('/tmp/continue-r')) Sys.sleep(0.01)
warning('beware')
system('echo from a program')
cat('ended\\n')`
    const lines: string[] = []
    const { logs } = await succeed(sandbox, code, {
      async onStdout({ line }) {
        lines.push(line)
        if (lines.length === 1) await sandbox.files.write('/tmp/continue-r', '')
      },
    })
    assert.equal(lines.join(''), 'begun\nfrom a program\nended\n')
    assert.match(logs.stderr.join(''), /^noted\nWarning[^]*beware\n$/)
  })

  test('10 MB of output arrive in full', async () => {
    const code = "for (number in 1:1000) cat(strrep('ü', 9999), '\\n', sep = '')"
    const { logs } = await succeed(sandbox, code, { timeoutMs: 0 })
    const output = logs.stdout.join('')
    assert.deepEqual([output.length, output.replaceAll('ü', '').length], [10_000_000, 1_000])
  })

  test('an error has a name, a value and a traceback', async () => {
    await succeed(
      sandbox,
      "inner <- function(n) stop('too small: ', n); outer <- function() inner(3)",
    )
    const { error, results } = await runR(sandbox, '1\nouter()\n2')
    assert.deepEqual([error?.name, error?.value], ['simpleError', 'too small: 3'])
    assert.equal(
      error?.traceback,
      'Error in inner(3): too small: 3\nTraceback:\n1. outer()\n2. inner(3)\n3. stop("too small: ", n)',
    )
    // Results from before the error stay.
    assert.deepEqual(
      results.map(({ text }) => text),
      ['[1] 1'],
    )
    const syntax = await runR(sandbox, 'x <- (1')
    assert.equal(syntax.error?.name, 'parseError')
    const own =
      "stop(structure(class = c('own', 'error', 'condition'), list(message = 'm', call = NULL)))"
    assert.deepEqual((await runR(sandbox, own)).error?.name, 'own')
    const deep = await runR(sandbox, 'f <- function() f(); f()')
    assert.match(deep.error?.value ?? '', /nested too deeply|stack usage/)
    assert.equal(
      (await succeed(sandbox, 'tryCatch(stop("a"), error = function(e) 7)')).text,
      '[1] 7',
    )
  })

  test('plots are pictures, one for each page', async () => {
    const code =
      'plot(1:3, main = "Größe")\nlines(3:1)\nbarplot(c(1, 2), col = "#ff0080", border = NA)'
    const { results } = await succeed(sandbox, code)
    // The value of `barplot`, the positions of its bars, is invisible.
    const pictures = results.map(({ png }) => png).filter((png) => png !== undefined)
    assert.equal(pictures.length, 2)
    const [first, second] = pictures.map((png) => readPng(Buffer.from(png, 'base64')))
    assert.deepEqual([first?.width, first?.height], [840, 840])
    assert.ok((first?.countColors() ?? 0) > 1, 'the picture is empty')
    assert.equal(second?.color(300, 600), 'ff0080')
    const wide =
      'options(repr.plot.width = 8, repr.plot.height = 4, repr.plot.res = 100)\nhist(c(1, 2, 2))'
    const [result] = (await succeed(sandbox, wide)).results
    const { width, height } = readPng(Buffer.from(result?.png ?? '', 'base64'))
    assert.deepEqual([width, height], [800, 400])
  })

  test('a data frame has an HTML table and its columns', async () => {
    const code =
      "data.frame(a = c(1.5, NA), b = factor(c('x<y', 'z')), day = as.Date(c('2024-02-29', NA)), ok = TRUE)"
    const [result] = (await succeed(sandbox, code)).results
    assert.deepEqual(result?.data, {
      a: [1.5, null],
      b: ['x<y', 'z'],
      day: ['2024-02-29', null],
      ok: [true, true],
    })
    assert.match(result.html ?? '', /<table>[^]*<td>x&lt;y<\/td>/)
    assert.match(result.text ?? '', /^ {4}a {3}b {8}day {3}ok\n1 1\.5 x<y 2024-02-29 TRUE/)
  })

  test('variables of the sandbox and of one execution are set', async () => {
    const code = "Sys.getenv(c('GIVEN', 'ONCE'), names = FALSE)"
    const { text } = await succeed(sandbox, code, { envs: { ONCE: 'now' } })
    assert.equal(text, '[1] "at create" "now"      ')
    assert.equal((await succeed(sandbox, code)).text, '[1] "at create" ""         ')
  })

  test('contexts have their own variables and folder', async () => {
    await succeed(sandbox, 'own <- 1')
    const context = await sandbox.createCodeContext({ language: 'r', cwd: '/tmp' })
    assert.deepEqual([context.language, context.cwd], ['r', '/tmp'])
    assert.equal((await sandbox.runCode('getwd()', { context })).text, '[1] "/tmp"')
    assert.match((await sandbox.runCode('own', { context })).error?.value ?? '', /'own' not found/)
    await sandbox.removeCodeContext(context)
  })

  test('code past its timeout is interrupted and keeps its variables', async () => {
    await succeed(sandbox, 'kept <- 5')
    for (const endless of ['repeat {}', 'Sys.sleep(600)', 'system("sleep 600")']) {
      await assert.rejects(runR(sandbox, endless, { timeoutMs: 1_000 }), TimeoutError)
      assert.equal((await succeed(sandbox, 'kept')).text, '[1] 5', endless)
    }
  })

  test('a kernel that ends is replaced', async () => {
    const { error } = await runR(sandbox, 'quit(status = 3)')
    assert.equal(error?.name, 'KernelDied')
    assert.match(error.value, /status 3/)
    assert.equal((await succeed(sandbox, '1 + 1')).text, '[1] 2')
  })

  test('variables survive a pause, and forks have their own', async () => {
    await succeed(sandbox, 'value <- 100')
    await sandbox.pause()
    await sandbox.connect()
    assert.equal((await succeed(sandbox, 'value')).text, '[1] 100')
    const forks = await sandbox.fork({ count: 2, timeoutMs })
    const texts = await Promise.all(
      forks.map(async (fork, number) => {
        assert.ok(fork instanceof Sandbox, fork instanceof Error ? fork.message : '')
        await succeed(fork, `value <- value + ${number}`)
        const { text } = await succeed(fork, 'value')
        await fork.kill()
        return text
      }),
    )
    assert.deepEqual(texts, ['[1] 100', '[1] 101'])
    await sandbox.kill()
  })
})

/** Creates a sandbox, again and again while the template is being installed. */
async function createInstalled(options: SandboxOpts): Promise<Sandbox> {
  for (;;) {
    try {
      return await Sandbox.create(options)
    } catch (error) {
      if (!/still being installed/.test(String(error))) throw error
    }
  }
}

function runR(sandbox: Sandbox, code: string, options: RunCodeOpts = {}): Promise<Execution> {
  return sandbox.runCode(code, { ...options, language: 'r' })
}

async function succeed(sandbox: Sandbox, code: string, options?: RunCodeOpts): Promise<Execution> {
  const execution = await runR(sandbox, code, options)
  assert.equal(execution.error, undefined, execution.error?.traceback)
  return execution
}
