/** Plain TCP copy between the host and a sandbox, through a small server at the address of the sandbox. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Sandbox } from 'e2b'
import { openLowOverheadSocket, sendFile } from './low-overhead-socket.ts'

export interface TcpCopy {
  /** Receives `bytes` bytes from the memory of the server. */
  generate(bytes: number): Promise<void>
  /** Receives a file of the sandbox. */
  download(path: string, bytes: number): Promise<void>
  /** Sends the host file `source` to the sandbox file `path`. */
  upload(source: string, path: string, bytes: number): Promise<void>
}

export async function startTcpCopy(sandbox: Sandbox): Promise<TcpCopy> {
  await sandbox.files.write('/tmp/tcp-copy.py', server)
  const endpoint = await new Promise<string>((resolve, reject) => {
    let output = ''
    const onStdout = (text: string) => {
      output += text
      if (output.endsWith('\n')) resolve(output)
    }
    const options = { timeoutMs: 0, onStdout }
    sandbox.commands.run('exec python3 -u /tmp/tcp-copy.py', options).then(reject, reject)
  })
  const [host = '', port = ''] = endpoint.trim().split(' ')
  const address = { host, port: Number(port) }
  const open = async (request: string): Promise<Socket> => {
    const socket = connect(address)
    await once(socket, 'connect')
    socket.write(`${request}\n`)
    return socket
  }
  return {
    generate: async (bytes) => count(await open(`generate ${bytes}`), bytes),
    async download(path, bytes) {
      let received = 0
      const socket = await openLowOverheadSocket(address, (chunk) => (received += chunk.length))
      socket.write(`download ${path}\n`)
      await once(socket, 'close')
      if (received !== bytes) throw new Error(`Expected ${bytes} bytes, but ${received} arrived`)
    },
    async upload(source, path, bytes) {
      let output = ''
      const socket = await openLowOverheadSocket(address, (chunk) => (output += chunk.toString()))
      socket.write(`upload ${path}\n`)
      await sendFile(socket, source)
      socket.end()
      await once(socket, 'close')
      if (output !== String(bytes))
        throw new Error(`Expected ${bytes} bytes, but ${output} arrived`)
    },
  }
}

/** Reads until the peer closes. */
async function count(socket: Socket, expected: number): Promise<void> {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await once(socket, 'close')
  if (bytes !== expected) throw new Error(`Expected ${expected} bytes, but ${bytes} arrived`)
}

const server = `
import socket
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.connect(('192.0.2.1', 9)) # sends nothing, but selects our own address
listener = socket.create_server(('0.0.0.0', 0))
print(probe.getsockname()[0], listener.getsockname()[1])
chunk = bytes(256 * 1024)
while True:
    client, _ = listener.accept()
    with client:
        line = b''
        while not line.endswith(b'\\n'): line += client.recv(1)
        kind, *words = line.decode().split()
        if kind == 'generate':
            left = int(words[0])
            while left > 0: left -= client.send(chunk[:left])
        elif kind == 'download':
            with open(words[0], 'rb', buffering=0) as file:
                while data := file.read(len(chunk)): client.sendall(data)
        else:
            total = 0
            with open(words[0], 'wb', buffering=0) as file:
                while data := client.recv(len(chunk)): total += file.write(data)
            client.sendall(str(total).encode())
`
