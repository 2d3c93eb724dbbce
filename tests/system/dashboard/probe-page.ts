/** Page of a hostile sandbox. The result of each attempt is `refused`, or the response. */
export function probePage(origin: string, id: string): string {
  return `<!doctype html><div id="results"></div><iframe src="${origin}/"></iframe><script type="module">
const attempt = (run) => run().then((got) => String(got), () => 'refused')
const results = {
  read: await attempt(async () => (await fetch('${origin}/bff/session', { credentials: 'include' })).text()),
  write: await attempt(async () => (await fetch('${origin}/bff/api/sandboxes/${id}', { method: 'DELETE', credentials: 'include' })).status),
  socket: await attempt(() => new Promise((resolve, reject) => {
    const socket = new WebSocket('${origin.replace('http', 'ws')}/bff/sandboxes/${id}/terminal')
    socket.onopen = () => resolve('open')
    socket.onerror = reject
  })),
  opener: await attempt(async () => { if (!window.opener) throw 0; return 'opener' }),
}
document.getElementById('results').textContent = JSON.stringify(results)
</script>`
}
