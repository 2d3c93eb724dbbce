/** Client program of `https.test.ts`: the published SDK with nothing but E2B_DOMAIN and a key, then plain fetch. */
import { Sandbox } from 'e2b'
import { waitFor } from '@atoll/kit/wait'

const port = 8000
const program = `
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        names = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'Host']
        body = json.dumps([self.headers[name] for name in names]).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = ThreadingHTTPServer(('0.0.0.0', ${port}), Handler)
print('listening')
server.serve_forever()
`

const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
await sandbox.files.write('/tmp/server.py', program)
const { stdout } = await sandbox.commands.run('echo over TLS')
const server = await sandbox.commands.run('python3 -u /tmp/server.py', {
  background: true,
  timeoutMs: 0,
})
await waitFor('the server', () => server.stdout.includes('listening'))
const host = sandbox.getHost(port)
const reply = await fetch(`https://${host}/`, {
  headers: { 'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Proto': 'ftp' },
})
const file = await fetch(await sandbox.downloadUrl('/tmp/server.py'))
const forwarded: unknown = await reply.json()
const downloaded = (await file.text()) === program
// The test that reads this uses the sandbox, and ends it.
process.stdout.write(
  JSON.stringify({ sandboxId: sandbox.sandboxId, stdout, host, forwarded, downloaded }),
)
process.exit(0)
