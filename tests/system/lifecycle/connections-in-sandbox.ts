/**
 * Two servers to run inside a sandbox, on Node.js and on Python's asyncio, whose event loops use epoll. `/dial`
 * connects to the echo server at FAR, `/hold` is never answered, and all other paths return the state of the
 * connections.
 */
export const nodeSource = `
const { createServer } = require('node:http')
const { connect } = require('node:net')
const [host, farPort] = process.env.FAR.split(':')
let count = 0
let open = 0
const ends = []
createServer((request, response) => {
  count += 1
  const told = () => JSON.stringify({ count, open, ends, cpuMs: process.cpuUsage().user / 1000 })
  if (request.url === '/hold') return
  if (request.url !== '/dial') return response.end(told())
  const socket = connect(Number(farPort), host)
  socket.write('hello')
  socket.once('data', () => {
    open += 1
    response.end(told())
  })
  socket.once('error', (error) => ends.push(error.code))
  socket.once('close', () => (open -= 1))
}).listen(Number(process.env.PORT), () => console.log('listening'))
`

export const asyncioSource = `
import asyncio, json, os, time
host, far_port = os.environ['FAR'].split(':')
state = {'count': 0, 'open': 0, 'ends': []}
# The event loop holds no task by itself.
tasks = set()
async def listen_to(reader, writer):
    try:
        if await reader.read(1) == b'':
            state['ends'].append('end')
    except OSError as error:
        state['ends'].append(type(error).__name__)
    state['open'] -= 1
    writer.close()
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b'\\r\\n\\r\\n')
            state['count'] += 1
            path = head.split(b' ')[1]
            if path == b'/hold':
                await asyncio.sleep(1000)
            if path == b'/dial':
                far, far_writer = await asyncio.open_connection(host, int(far_port))
                far_writer.write(b'hello')
                await far.readexactly(5)
                state['open'] += 1
                tasks.add(asyncio.create_task(listen_to(far, far_writer)))
            body = json.dumps({**state, 'cpuMs': time.process_time() * 1000}).encode()
            writer.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, '0.0.0.0', int(os.environ['PORT']))
    print('listening', flush=True)
    await server.serve_forever()
asyncio.run(main())
`
