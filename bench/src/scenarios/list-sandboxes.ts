/** Lists a page of 100 out of 100,000 running sandboxes. The baseline is the same query in a database shell. */
import { compareWithDatabase } from '../compare-with-database.ts'
import { listStatements, sandboxCount } from '../record-statements.ts'
import type { Scenario } from '../scenario.ts'

const limit = 100

export const listSandboxes: Scenario = {
  name: 'list-sandboxes',
  rounds: 30,
  async measure(context) {
    const rows = await compareWithDatabase(context, async ({ teamId }) => ({
      statements: listStatements(teamId, limit),
      path: `/v2/sandboxes?limit=${limit}`,
      fromShell: (lines) => {
        const ids = lines.slice(0, limit).map((line) => line.split('|')[0])
        return [...ids, lines.at(-1)].join(' ')
      },
      fromApi: ({ headers, text }) => {
        const listed: { sandboxID: string }[] = JSON.parse(text)
        return [...listed.map(({ sandboxID }) => sandboxID), headers.get('x-total-running')].join(
          ' ',
        )
      },
    }))
    const description = `GET /v2/sandboxes: ${limit} of ${sandboxCount}, ${context.rounds} rounds, interleaved`
    return [{ scenario: 'list-sandboxes', description, rows }]
  },
}
