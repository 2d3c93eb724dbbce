import type { ApiReply, RecordStore } from './record-store.ts'
import type { ScenarioReport } from './report.ts'
import { interleave, timed } from './scenario.ts'
import type { Samples, ScenarioContext } from './scenario.ts'

/** A question to the platform API, and the same one in the language of its store. */
export interface Question {
  readonly statements: string
  readonly path: string
  /** What the answers say, in a form that is the same for both. */
  ofLines(lines: readonly string[]): string
  ofReply(reply: ApiReply): string
}

/** Asks every store both ways, and fails unless both say the same. */
export async function compareWithHand(
  context: ScenarioContext,
  toQuestion: (store: RecordStore) => Promise<Question>,
): Promise<ScenarioReport['rows']> {
  const stores = await context.stage.recordStores()
  const measurements = []
  for (const store of stores) {
    const { statements, path, ofLines, ofReply } = await toQuestion(store)
    let expected: string | undefined
    const check = (said: string) => {
      expected ??= said
      if (said !== expected) throw new Error(`${path}: the answers differ\n${said}\n${expected}`)
    }
    measurements.push(
      async ({ note }: Samples) => {
        let lines: readonly string[] = []
        const ms = await timed(async () => (lines = await store.hand.query(statements)))
        check(ofLines(lines))
        note(store.program, ms)
      },
      async ({ note }: Samples) => {
        let reply: ApiReply = { headers: new Headers(), text: '' }
        const ms = await timed(async () => (reply = await store.get(path)))
        check(ofReply(reply))
        note(`Atoll, ${store.database}`, ms)
      },
    )
  }
  const { row } = await interleave(context, measurements)
  return stores.flatMap(({ program, database }) => [
    row(program),
    row(`Atoll, ${database}`, program),
  ])
}
