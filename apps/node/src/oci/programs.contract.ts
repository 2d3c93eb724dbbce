/** Programs that the runtime contract runs in a sandbox, and readers of their output. */
import { envdCommands } from '../envd/commands.ts'

interface Endpoint {
  readonly address: string
}

export async function startPython({ address }: Endpoint, source: string): Promise<void> {
  const endpoint = { address, accessToken: undefined }
  const command = { ...asRoot, command: 'python3', args: ['-c', source] }
  await envdCommands.start(endpoint, command, AbortSignal.timeout(limitMs))
}

/** Reads the lines of a file in the sandbox; empty when the file does not exist. */
export async function linesOf({ address }: Endpoint, path: string): Promise<string[]> {
  const lines: string[] = []
  const endpoint = { address, accessToken: undefined }
  const command = { ...asRoot, command: 'cat', args: [path] }
  await envdCommands.run(endpoint, command, {
    onLine: async (stream, line) => void (stream === 'stdout' && lines.push(line)),
    signal: AbortSignal.timeout(limitMs),
  })
  return lines
}

const asRoot = { user: 'root', cwd: '/', envVars: {} }
const limitMs = 30_000

/** Closes all but one of several connections that epoll found idle together, and logs all later events. */
export const epollSource = `
import select, socket
epoll = select.epoll()
listener = socket.create_server(('127.0.0.1', 0))
clients, servers = [], []
for _ in range(4):
    clients.append(socket.create_connection(listener.getsockname()))
    servers.append(listener.accept()[0])
    epoll.register(servers[-1], select.EPOLLIN)
for client, server in zip(clients, servers):
    client.send(b'x')
    server.recv(1)
epoll.poll(0)
for client, server in zip(clients[1:], servers[1:]):
    epoll.unregister(server)
    client.close()
    server.close()
with open('/tmp/waits', 'w') as waits:
    while True:
        print(epoll.poll(0.1), file=waits, flush=True)
`

/** Waits in libc's recv until /tmp/go exists, and logs the result. Python's own recv would retry after EINTR. */
export const receiverSource = `
import ctypes, errno, os, socket, threading, time
library = ctypes.CDLL(None, use_errno=True)
near, far = socket.socketpair()
def send():
    while not os.path.exists('/tmp/go'):
        time.sleep(0.1)
    far.send(b'x')
threading.Thread(target=send, daemon=True).start()
print('waiting', file=open('/tmp/waiting', 'w'), flush=True)
received = library.recv(near.fileno(), ctypes.create_string_buffer(1), 1, 0)
ending = f'received {received}' if received >= 0 else f'failed {errno.errorcode[ctypes.get_errno()]}'
with open('/tmp/result', 'w') as result:
    print(ending, file=result)
`

/** Runs eight times 100 processes that read their own folder of /proc, and writes a line after each 100. */
export const manyProcessesSource = `
import subprocess
with open('/tmp/ended', 'w') as ended:
    for _ in range(8):
        for _ in range(100):
            subprocess.run(['cat', '/proc/self/stat'], stdout=subprocess.DEVNULL)
        print('100', file=ended, flush=True)
`
