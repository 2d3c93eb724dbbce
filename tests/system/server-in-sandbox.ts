/**
 * Small server to run inside a sandbox with `node -e`: returns the request line and host, and echoes WebSocket
 * messages.
 */
export const serverSource = `
const { createHash } = require('node:crypto')
const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11' // RFC 6455, 1.3
const server = require('node:http').createServer((req, res) => {
  res.setHeader('X-From', 'inside')
  res.end(req.method + ' ' + req.url + ' ' + req.headers.host)
})
server.on('upgrade', (req, socket) => {
  const accept = createHash('sha1').update(req.headers['sec-websocket-key'] + magic).digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
  socket.on('data', (frame) => {
    const length = frame[1] & 127
    const payload = frame.subarray(6, 6 + length).map((byte, i) => byte ^ frame[2 + (i % 4)])
    socket.write(Buffer.concat([Buffer.from([frame[0], length]), payload]))
  })
  socket.on('error', () => {})
})
server.listen(Number(process.env.PORT), () => console.log('listening'))
`
