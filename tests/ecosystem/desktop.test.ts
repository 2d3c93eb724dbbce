/** The published package @e2b/desktop, unmodified, on a template of the catalogue. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { outputOf, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { atoll, install } from '@atoll/system-tests/installation'
import type { Installation } from '@atoll/system-tests/installation'
import { Sandbox } from '@e2b/desktop'
import { readPng } from './png.ts'
import type { Picture } from './png.ts'

/** Installing the template takes minutes where its layer is not cached. */
const installLimitMs = 1_200_000
const polling = { intervalMs: 500, timeoutMs: 300_000 }
const pageColor = 'ff0080'
const page = `<title>Served inside</title><body style="background: #${pageColor}">`

suite('the desktop package on gvisor', () => {
  let installation: Installation
  /** Shared by the tests. */
  let desktop: Sandbox

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor' })
  })
  after(() => installation[Symbol.asyncDispose]())

  function create(options: object = {}): Promise<Sandbox> {
    const limits = { timeoutMs: 1_200_000, requestTimeoutMs: 300_000 }
    return Sandbox.create({ ...installation.connection, ...limits, ...options })
  }

  test('the command line installs the template and shows progress', async () => {
    const { url, apiKey, env } = installation
    const options = {
      env: { ...env, ATOLL_API_URL: url, ATOLL_API_KEY: apiKey },
      timeoutMs: installLimitMs,
    }
    const args = ['template', 'install', 'desktop']
    const result = await tryRun(atoll, args, options)
    assert.equal(outputOf(atoll, args, result), 'desktop\n')
    assert.match(result.stderr, /\d+ % desktop: /)
  })

  test('a new sandbox shows a complete desktop, which was running before it was created', async () => {
    desktop = await create()
    const picture = readPng(await desktop.screenshot())
    assert.deepEqual([picture.width, picture.height], [1024, 768])
    assert.ok(picture.countColors() > 50, `only ${picture.countColors()} colors`)
    assert.deepEqual(await desktop.getScreenSize(), { width: 1024, height: 768 })
    // The package asked for an X server and a session of its own.
    assert.equal(await output(desktop, 'pgrep --exact --count Xvfb'), '1')
    assert.equal(await output(desktop, 'pgrep --exact --count xfce4-session'), '1')
  })

  test('the mouse moves, and a click on the panel opens the file manager', async () => {
    await desktop.moveMouse(300, 200)
    assert.deepEqual(await desktop.getCursorPosition(), { x: 300, y: 200 })
    await desktop.leftClick(144, 14)
    const window = await windowOf(desktop, 'thunar')
    // Thunar names the folder once it has read it.
    const isNamed = async () => (await desktop.getWindowTitle(window)) === 'user - Thunar'
    await waitFor('the file manager to show the home folder', isNamed, polling)
  })

  test('a file opens in the editor, and the keyboard changes it', async () => {
    const path = '/home/user/note.txt'
    await desktop.files.write(path, '')
    await desktop.open(path)
    const window = await windowOf(desktop, 'mousepad')
    await focus(desktop, window)
    const text = "It's size 1 & <2>"
    await typeUntil(
      async () => (await desktop.files.read(path)).trimEnd() === text,
      async () => {
        await desktop.press(['ctrl', 'a'])
        await desktop.write(text)
        await desktop.press(['ctrl', 's'])
      },
    )
  })

  test('a command that is typed into the terminal runs', async () => {
    await desktop.launch('xfce4-terminal')
    await focus(desktop, await windowOf(desktop, 'st-256color'))
    const read = () => desktop.files.read('/home/user/typed.txt').catch(() => undefined)
    await typeUntil(
      async () => (await read()) === '42\n',
      async () => {
        await desktop.press(['ctrl', 'c'])
        await desktop.write('echo $((6 * 7)) > ~/typed.txt')
        await desktop.press('enter')
      },
    )
  })

  test('the browser shows a page, also after a pause', async () => {
    await desktop.files.write('/home/user/site/index.html', page)
    const server = 'python3 -m http.server 8000 --directory /home/user/site'
    await desktop.commands.run(server, { background: true, timeoutMs: 0 })
    await desktop.open('http://localhost:8000')
    const shows = async () => (await look(desktop)).color(600, 600) === pageColor
    const named = async () => /^Served inside - Chromium$/m.test(await titles(desktop, 'chromium'))
    await waitFor('the page', shows, polling)
    await waitFor('the title of the page', named, polling)
    await desktop.pause()
    await desktop.connect()
    await desktop.press('f5')
    await waitFor('the page', shows, polling)
    await waitFor('the title of the page', named, polling)
  })

  test('the stream has a page, and its WebSocket speaks VNC', async () => {
    await desktop.stream.start({ requireAuth: true })
    const streamUrl = new URL(desktop.stream.getUrl({ authKey: desktop.stream.getAuthKey() }))
    assert.match(streamUrl.host, new RegExp(`^6080-${desktop.sandboxId}\\.`))
    const headers = { 'E2b-Sandbox-Id': desktop.sandboxId, 'E2b-Sandbox-Port': '6080' }
    const html = await fetch(`${installation.url}/vnc.html`, { headers })
    assert.match(await html.text(), /noVNC/)
    const url = `${installation.url.replace('http', 'ws')}/websockify`
    const socket = new WebSocket(url, { protocols: 'binary', headers })
    socket.binaryType = 'arraybuffer'
    const [message] = await once(socket, 'message')
    assert.match(Buffer.from(message.data).toString(), /^RFB 003\.008\n/)
    socket.close()
    await desktop.stream.stop()
    await desktop.kill()
  })

  test('another screen size gets another desktop', async () => {
    const large = await create({ resolution: [1280, 800], dpi: 120 })
    const complete = async () => (await look(large)).countColors() > 50
    await waitFor('the desktop', complete, polling)
    const { width, height } = await look(large)
    assert.deepEqual([width, height], [1280, 800])
    assert.equal(await output(large, 'pgrep --exact --count Xvfb'), '1')
    await large.kill()
  })

  test('programs of the desktop have the variables of the sandbox', async () => {
    const own = await create({ envs: { GIVEN: 'at create' } })
    const command = String.raw`tr '\0' '\n' < /proc/$(pgrep --exact xfce4-session)/environ`
    assert.match(await output(own, command), /^GIVEN=at create$/m)
    assert.equal(await output(own, 'pgrep --exact --count Xvfb'), '1')
    await own.kill()
  })

  test('forks have the open windows, and a mouse of their own', async () => {
    const own = await create()
    await own.launch('org.xfce.mousepad')
    await windowOf(own, 'mousepad')
    await own.moveMouse(10, 20)
    const forks = await own.fork({ count: 2, timeoutMs: 1_200_000, requestTimeoutMs: 300_000 })
    for (const [number, fork] of forks.entries()) {
      assert.ok(fork instanceof Sandbox, fork instanceof Error ? fork.message : '')
      assert.match(await titles(fork, 'mousepad'), /Mousepad$/m)
      await fork.moveMouse(300, 200 + number)
      assert.deepEqual(await fork.getCursorPosition(), { x: 300, y: 200 + number })
      assert.ok((await look(fork)).countColors() > 50)
      await fork.kill()
    }
    assert.deepEqual(await own.getCursorPosition(), { x: 10, y: 20 })
    await own.kill()
  })
})

test('on runc the desktop works too', async () => {
  await using installation = await install({ ATOLL_RUNTIME: 'runc' })
  const limits = { timeoutMs: 1_200_000, requestTimeoutMs: installLimitMs }
  const desktop = await Sandbox.create({ ...installation.connection, ...limits })
  await desktop.files.write('/home/user/page.html', page)
  await desktop.open('/home/user/page.html')
  const shows = async () => (await look(desktop)).color(600, 600) === pageColor
  await waitFor('the page', shows, polling)
  await desktop.kill()
})

/** Types, and types again while the effect is missing: keys get lost on a busy machine. `type` must begin anew. */
async function typeUntil(isDone: () => Promise<boolean>, type: () => Promise<void>): Promise<void> {
  const attempts = 10
  for (let attempt = 1; attempt < attempts; attempt += 1) {
    await type()
    const limits = { intervalMs: 500, timeoutMs: 30_000 }
    const done = await waitFor('the typed text', isDone, limits).catch(ignoreTimeout)
    if (done) return
  }
  await type()
  await waitFor('the typed text', isDone, polling)
}

function ignoreTimeout(error: unknown): false {
  if (error instanceof Fault && error.kind === 'timeout') return false
  throw error
}

async function output(sandbox: Sandbox, command: string): Promise<string> {
  return (await sandbox.commands.run(command)).stdout.trim()
}

async function look(sandbox: Sandbox): Promise<Picture> {
  return readPng(await sandbox.screenshot())
}

/** Waits for a window of the application and returns its ID. */
async function windowOf(sandbox: Sandbox, application: string): Promise<string> {
  const find = () => sandbox.getApplicationWindows(application).catch(() => undefined)
  const ids = await waitFor(`a window of ${application}`, find, polling)
  return ids.at(-1) ?? assert.fail('no window')
}

/** Asks again if xdotool fails: it does when a window closes between its list of windows and a look at one of them. */
async function titles(sandbox: Sandbox, application: string): Promise<string> {
  const read = async () => {
    const ids = await sandbox.getApplicationWindows(application)
    return (await Promise.all(ids.map((id) => sandbox.getWindowTitle(id)))).join('\n')
  }
  return waitFor(`titles of ${application}`, () => read().catch(() => undefined), polling)
}

async function focus(sandbox: Sandbox, window: string): Promise<void> {
  await sandbox.commands.run(`xdotool windowactivate --sync ${window}`)
}
