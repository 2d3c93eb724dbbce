/** Worker that reads requests and stops the main thread when it is busy. */
import { createReadStream } from 'node:fs'
import { Session } from 'node:inspector'
import { createInterface } from 'node:readline'
import { parentPort, workerData } from 'node:worker_threads'
import type { FromThread, ToThread } from './messages.ts'

const session = new Session()
session.connectToMainThread()
let isRunning = false

parentPort?.on('message', (_message: ToThread) => {
  isRunning = false
})

const requests = createReadStream('', { fd: workerData.requestsFd })
for await (const line of createInterface({ input: requests })) {
  const { op, ...request } = JSON.parse(line)
  if (op === 'execute') {
    isRunning = true
    post({ type: 'execute', ...request })
  } else if (op === 'interrupt' && isRunning) {
    session.post('Runtime.terminateExecution', () => post({ type: 'interrupt' }))
  }
}
process.exit()

function post(message: FromThread): void {
  parentPort?.postMessage(message, [])
}
