import { waitFor } from '@atoll/kit/wait'
import type { Sandbox } from 'e2b'
import type { Page } from 'playwright-core'

interface Probe extends AsyncDisposable {
  /** Results of the attempts by name, once all of them have ended. */
  results(): Promise<Record<string, string>>
  /** Contents of the frames in the page. */
  frameContents(): Promise<string[]>
}

/** Serves the probe page on port 8000 of the sandbox, and opens it in another tab with the session of the dashboard. */
export async function openProbePage(
  dashboard: Page,
  sandbox: Sandbox,
  { origin, address }: { readonly origin: string; readonly address: string },
): Promise<Probe> {
  const html = probeHtml(origin, sandbox.sandboxId)
  await sandbox.files.write('/home/user/site/index.html', html)
  const serve = 'cd /home/user/site && python3 -m http.server 8000'
  await sandbox.commands.run(serve, { background: true, timeoutMs: 0 })
  const probe = await dashboard.context().newPage()
  await waitFor('the page of the sandbox', async () =>
    (await probe.goto(address).catch(() => undefined))?.ok(),
  )
  return {
    async results() {
      const text = await waitFor('the results of the probe', async () => {
        const shown = await probe.locator('#results').innerText()
        return shown === '' ? undefined : shown
      })
      return JSON.parse(text)
    },
    frameContents() {
      const frames = probe.frames().filter((frame) => frame !== probe.mainFrame())
      return Promise.all(frames.map((frame) => frame.content().catch(() => '')))
    },
    [Symbol.asyncDispose]: () => probe.close(),
  }
}

/** Page of a hostile sandbox. The result of each attempt is `refused`, or the response. */
function probeHtml(origin: string, id: string): string {
  return `<!doctype html><div id="results"></div><iframe src="${origin}/"></iframe><script type="module">
const attempt = (run) => run().then((got) => String(got), () => 'refused')
const results = {
  read: await attempt(async () => (await fetch('${origin}/bff/session', { credentials: 'include' })).text()),
  write: await attempt(async () => (await fetch('${origin}/bff/api/sandboxes/${id}', { method: 'DELETE', credentials: 'include' })).status),
  socket: await attempt(() => new Promise((resolve, reject) => {
    const socket = new WebSocket('${origin.replace('http', 'ws')}/bff/live')
    socket.onopen = () => resolve('open')
    socket.onerror = reject
  })),
  opener: await attempt(async () => { if (!window.opener) throw 0; return 'opener' }),
}
document.getElementById('results').textContent = JSON.stringify(results)
</script>`
}
