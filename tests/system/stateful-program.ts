/**
 * Program with state to lose: a count and data in memory, an open file and a listening port. It returns its state to
 * each request on the port, and each request increases the count.
 */
import { randomInt } from 'node:crypto'
import { waitFor } from '@atoll/kit/wait'
import type { CommandHandle, Sandbox } from 'e2b'

export interface StatefulProgram {
  readonly handle: CommandHandle
  /** File with one count per line. */
  readonly file: string
  /** Requests the state by plain HTTP through the edge. A copy of the sandbox has a copy of the program. */
  request(sandboxId?: string): Promise<ProgramState>
}

export interface ProgramState {
  readonly pid: number
  readonly count: number
  readonly sha256: string
  /** Read from the kernel for each request. */
  readonly random: string
}

export async function startStatefulProgram(
  { url }: { readonly url: string },
  sandbox: Sandbox,
  { dataMb = 1 }: { readonly dataMb?: number } = {},
): Promise<StatefulProgram> {
  const port = '8000'
  const file = '/home/user/counts'
  const seed = `${randomInt(2 ** 31)}`
  const handle = await sandbox.commands.run('exec python3 -c "$PROGRAM"', {
    background: true,
    envs: { PROGRAM: source, SEED: seed, DATA_MB: `${dataMb}`, COUNTS: file, PORT: port },
    timeoutMs: 0,
  })
  const isListening = () => handle.stdout === 'listening\n'
  await waitFor('the program to listen', isListening).catch((cause: unknown) => {
    throw new Error(`the program printed ${handle.stdout}${handle.stderr}`, { cause })
  })
  return {
    handle,
    file,
    async request(sandboxId = sandbox.sandboxId) {
      const headers = { 'E2b-Sandbox-Id': sandboxId, 'E2b-Sandbox-Port': port }
      const reply = await fetch(url, { headers })
      const body = await reply.text()
      if (reply.status !== 200) throw new Error(`answered ${reply.status}: ${body}`)
      return JSON.parse(body)
    },
  }
}

const source = `
import hashlib, http.server, itertools, json, os, random
data = random.Random(int(os.environ['SEED'])).randbytes(int(os.environ['DATA_MB']) << 20)
counts = open(os.environ['COUNTS'], 'w')
randomness = open('/dev/urandom', 'rb', buffering=0)
# Two who ask at once are two threads: each is to have a number of its own.
numbers = itertools.count(1)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        count = next(numbers)
        print(count, file=counts, flush=True)
        body = json.dumps({
            'pid': os.getpid(),
            'count': count,
            'sha256': hashlib.sha256(data).hexdigest(),
            'random': randomness.read(16).hex(),
        }).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler)
print('listening', flush=True)
server.serve_forever()
`
