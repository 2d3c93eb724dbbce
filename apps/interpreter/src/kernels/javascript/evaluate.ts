import { Session } from 'node:inspector'
import type { Runtime } from 'node:inspector'
import { inspect } from 'node:util'

/**
 * Runs code as the console of a debugger does: with top-level await, and names that later code may declare again.
 */
export interface Evaluator {
  /** Runs the code that `prepare` returns. One at a time. */
  run(prepare: () => string): Promise<Outcome>
  /** Gives up waiting for the code under way. */
  interrupt(): void
}

export type Outcome =
  | { readonly type: 'value'; readonly value: unknown }
  | {
      readonly type: 'error'
      readonly name: string
      readonly value: string
      readonly traceback: string
    }

const interrupted: Outcome = {
  type: 'error',
  name: 'Interrupted',
  value: 'The execution was interrupted.',
  traceback: '',
}

/** Place where evaluated code leaves its value: the debugger's protocol has only descriptions of values. */
const exchange = Symbol.for('atoll.exchange')

export function createEvaluator(): Evaluator {
  const session = new Session()
  session.connect()
  let giveUp: ((outcome: Outcome) => void) | undefined

  const evaluateHere = (params: Runtime.EvaluateParameterType) =>
    new Promise<Runtime.EvaluateReturnType>((resolve, reject) => {
      session.post('Runtime.evaluate', params, (error, answer) =>
        error ? reject(error) : resolve(answer),
      )
    })

  async function valueOf(result: Runtime.RemoteObject): Promise<unknown> {
    const { result: place } = await evaluateHere({ expression: 'globalThis' })
    await new Promise<void>((resolve, reject) => {
      const params = {
        functionDeclaration: `function (value) { this[Symbol.for('atoll.exchange')] = value }`,
        ...(place.objectId !== undefined && { objectId: place.objectId }),
        arguments: [toArgument(result)],
      }
      session.post('Runtime.callFunctionOn', params, (error) => (error ? reject(error) : resolve()))
    })
    const value: unknown = Reflect.get(globalThis, exchange)
    Reflect.deleteProperty(globalThis, exchange)
    return value
  }

  async function evaluate(expression: string): Promise<Outcome> {
    const params = { expression, replMode: true, awaitPromise: true, objectGroup: 'cell' }
    const { result, exceptionDetails } = await evaluateHere(params)
    const value = await valueOf(exceptionDetails?.exception ?? result)
    session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' })
    if (exceptionDetails) return toError(value)
    return { type: 'value', value: await value }
  }

  return {
    async run(prepare) {
      const stopped = new Promise<Outcome>((resolve) => (giveUp = resolve))
      try {
        return await Promise.race([stopped, evaluate(prepare())])
      } catch (error) {
        return isTermination(error) ? interrupted : toError(error)
      } finally {
        giveUp = undefined
      }
    },
    interrupt: () => giveUp?.(interrupted),
  }
}

function toArgument(result: Runtime.RemoteObject): Runtime.CallArgument {
  const { objectId, unserializableValue, value } = result
  if (objectId !== undefined) return { objectId }
  return unserializableValue === undefined ? { value } : { unserializableValue }
}

/** The debugger answers with an internal error when the code it runs is stopped. */
function isTermination(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_INSPECTOR_COMMAND'
}

function toError(thrown: unknown): Outcome {
  if (!(thrown instanceof Error)) {
    return { type: 'error', name: 'Error', value: inspect(thrown), traceback: inspect(thrown) }
  }
  const traceback = thrown.stack ?? `${thrown.name}: ${thrown.message}`
  return { type: 'error', name: thrown.name, value: thrown.message, traceback: cut(traceback) }
}

/** Removes the frames of the kernel, which are below the first call of the debugger. */
function cut(stack: string): string {
  const at = stack.search(/\n +at Session\.post \(node:inspector/)
  return at < 0 ? stack : stack.slice(0, at)
}
