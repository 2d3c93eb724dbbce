/**
 * JavaScript and TypeScript kernel: `main.ts LANGUAGE REQUESTS_FD ANSWERS_FD`. User code runs in the main thread. A
 * worker reads requests, so that it can stop code that never yields.
 */
import { createRequire } from 'node:module'
import { cwd } from 'node:process'
import { Worker } from 'node:worker_threads'
import { createAnswers } from './answers.ts'
import { describe } from './display.ts'
import { createEvaluator } from './evaluate.ts'
import type { Outcome } from './evaluate.ts'
import type { FromThread, ToThread } from './messages.ts'
import { rewriteImports } from './rewrite-imports.ts'
import { stripTypes } from './strip-types.ts'
import { applyVariables } from './variables.ts'

const [language, requestsFd, answersFd] = process.argv.slice(2)
process.argv.splice(1)
const answers = createAnswers(Number(answersFd))
const evaluator = createEvaluator()
const worker = new Worker(new URL('./request-thread.ts', import.meta.url), {
  workerData: { requestsFd: Number(requestsFd) },
})

// Paths are relative to the working directory, as in a script there.
Object.assign(globalThis, { require: createRequire(`${cwd()}/`) })

// Blocks while the server does not read: the output of a busy cell must not pile up in memory.
for (const stream of [process.stdout, process.stderr]) {
  const handle: unknown = Reflect.get(stream, '_handle')
  const block: unknown = handle instanceof Object && Reflect.get(handle, 'setBlocking')
  if (typeof block === 'function') block.call(handle, true)
}

// The worker interrupts code by message; programs that user code started get the signal itself.
process.on('SIGINT', () => {})
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => console.error(error))
}

worker.on('message', (message: FromThread) => {
  if (message.type === 'interrupt') evaluator.interrupt()
  else void execute(message)
})
worker.on('exit', () => process.exit())
answers.send({ type: 'ready' })

async function execute(request: Extract<FromThread, { type: 'execute' }>): Promise<void> {
  Object.assign(process.env, request.sandbox_variables)
  const restore = applyVariables(process.env, request.variables)
  try {
    answerWith(await evaluator.run(() => prepare(request.code)))
  } finally {
    restore()
    postToThread({ type: 'idle' })
    answers.send({ type: 'done' })
  }
}

function prepare(code: string): string {
  return rewriteImports(language === 'typescript' ? stripTypes(code) : code)
}

function answerWith(outcome: Outcome): void {
  if (outcome.type === 'error') {
    const { name, value, traceback } = outcome
    answers.send({ type: 'error', name, value, traceback })
  } else if (outcome.value !== undefined) {
    answers.sendResult(describe(outcome.value))
  }
}

function postToThread(message: ToThread): void {
  worker.postMessage(message, [])
}
