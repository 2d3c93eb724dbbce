/**
 * Test reporter that `npm test` uses beside the readable one: one line of JSON for each step of a test. The lines
 * survive a killed test process and show which tests had not ended.
 */
import type { EventData } from 'node:test'
import type { TestEvent } from 'node:test/reporters'

type Step = 'queued' | 'begun' | 'ended' | 'passed' | 'failed' | 'skipped'

export interface TestStep {
  readonly step: Step
  readonly id: number
  /** ID of the test around it. 0 or undefined at the top. */
  readonly parent: number | undefined
  readonly name: string
  /** Where the test function is. The rows of a table share it. */
  readonly place: string
  /** Of an ended test. */
  readonly durationMs?: number
}

/** Steps of a file that ran as a suite, without those of the suite. */
export interface FileSteps {
  readonly steps: readonly TestStep[]
  readonly hasEnded: boolean
  readonly durationMs: number | undefined
}

export interface TestTally {
  /** Number of test functions of which no case has failed. */
  readonly passed: number
  /** Number of passed cases: a test function in a loop has one for each row. */
  readonly passedCases: number
  readonly failedTests: readonly string[]
  readonly skipped: number
  /** Started tests first, then queued ones. */
  readonly unfinishedTests: readonly string[]
}

/** @public Node.js loads a reporter by its default export. */
// oxlint-disable-next-line import/no-default-export
export default async function* reportSteps(
  events: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  for await (const event of events) {
    const step = stepOf(event)
    if (step) yield `${JSON.stringify(step)}\n`
  }
}

function stepOf({ type, data }: TestEvent): TestStep | undefined {
  if (!(data && 'name' in data && 'testId' in data)) return undefined
  const place = `${data.file}:${data.line}:${data.column}`
  const identity = { id: data.testId, parent: data.parentId, name: data.name, place }
  if (type === 'test:enqueue') return { step: 'queued', ...identity }
  if (type === 'test:dequeue') return { step: 'begun', ...identity }
  if (type === 'test:complete')
    return { step: 'ended', ...identity, durationMs: data.details.duration_ms }
  if (type !== 'test:pass' && type !== 'test:fail') return undefined
  if (data.skip !== undefined || data.todo !== undefined) return { step: 'skipped', ...identity }
  if (type === 'test:fail')
    return failsByItsTests(data) ? undefined : { step: 'failed', ...identity }
  return data.details.type === 'suite' ? undefined : { step: 'passed', ...identity }
}

/** True for a suite that fails only because of its tests, which are counted themselves. */
function failsByItsTests({ details }: EventData.TestFail): boolean {
  const { error } = details
  return 'failureType' in error && error.failureType === 'subtestsFailed'
}

/** Parses what a test process has written. The last line may be truncated. */
export function parseSteps(lines: string): TestStep[] {
  return lines.split('\n').slice(0, -1).map(parseStep)
}

/** Returns the steps of each file by its path, if each file ran as a suite of this name. */
export function splitByFile(steps: readonly TestStep[]): Map<string, FileSteps> {
  const fileOf = new Map<number, string>()
  for (const { step, id, parent, name } of steps) {
    if (step === 'queued') fileOf.set(id, (parent && fileOf.get(parent)) || name)
  }
  const groups = Map.groupBy(steps, ({ id, name }) => fileOf.get(id) ?? name)
  return new Map(
    [...groups].map(([path, group]) => {
      const end = group.find(({ step, parent }) => step === 'ended' && !parent)
      // The suite counts only if it fails itself: its file could not be loaded.
      const inside = group.filter(({ step, parent }) => parent || step === 'failed')
      return [path, { steps: inside, hasEnded: end !== undefined, durationMs: end?.durationMs }]
    }),
  )
}

export function tallySteps(steps: readonly TestStep[]): TestTally {
  const named = (step: Step) => steps.filter((other) => other.step === step)
  const ended = new Set(named('ended').map(({ id }) => id))
  const begun = new Set(named('begun').map(({ id }) => id))
  const open = named('queued').filter(({ id }) => !ended.has(id))
  const placesOf = (step: Step) => new Set(named(step).map(({ place }) => place))
  return {
    passed: placesOf('passed').difference(placesOf('failed')).size,
    passedCases: named('passed').length,
    failedTests: named('failed').map(({ name }) => name),
    skipped: named('skipped').length,
    unfinishedTests: [
      ...open.filter(({ id }) => begun.has(id)),
      ...open.filter(({ id }) => !begun.has(id)),
    ].map(({ name }) => name),
  }
}

function parseStep(line: string): TestStep {
  return JSON.parse(line)
}
