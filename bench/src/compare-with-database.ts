import type { ApiReply, RecordStore } from './record-store.ts'
import type { ScenarioReport } from './report.ts'
import { interleave, timed } from './scenario.ts'
import type { Samples, ScenarioContext } from './scenario.ts'

/** A request to the platform API and the equivalent SQL statements. */
export interface ApiQuery {
  readonly statements: string
  readonly path: string
  /** Both convert an answer to the same text, to compare the answers. */
  fromShell(lines: readonly string[]): string
  fromApi(reply: ApiReply): string
}

/** Measures the API and the database shell on every store, and fails if their answers differ. */
export async function compareWithDatabase(
  context: ScenarioContext,
  toQuery: (store: RecordStore) => Promise<ApiQuery>,
): Promise<ScenarioReport['rows']> {
  const stores = await context.testBed.recordStores()
  const measurements = []
  for (const store of stores) {
    const { statements, path, fromShell, fromApi } = await toQuery(store)
    let expected: string | undefined
    const check = (answer: string) => {
      expected ??= answer
      if (answer !== expected)
        throw new Error(`${path}: the answers differ\n${answer}\n${expected}`)
    }
    measurements.push(
      async ({ record }: Samples) => {
        let lines: readonly string[] = []
        const ms = await timed(async () => (lines = await store.shell.query(statements)))
        check(fromShell(lines))
        record(store.program, ms)
      },
      async ({ record }: Samples) => {
        let reply: ApiReply = { headers: new Headers(), text: '' }
        const ms = await timed(async () => (reply = await store.get(path)))
        check(fromApi(reply))
        record(`Atoll, ${store.database}`, ms)
      },
    )
  }
  const { row } = await interleave(context, measurements)
  return stores.flatMap(({ program, database }) => [
    row(program),
    row(`Atoll, ${database}`, program),
  ])
}
