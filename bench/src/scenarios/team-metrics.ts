/** Reads 7 days of team metrics (5 s samples, 15 min steps). The baseline is the same query in a database shell. */
import { compareWithDatabase } from '../compare-with-database.ts'
import { metricsSpanSeconds, teamMetricsStatement } from '../record-statements.ts'
import type { Scenario } from '../scenario.ts'

const stepSeconds = 900

export const teamMetrics: Scenario = {
  name: 'team-metrics',
  rounds: 30,
  async measure(context) {
    const rows = await compareWithDatabase(context, async ({ teamId, shell }) => {
      const [latest] = await shell.query('select max(at) from team_metrics;')
      // The running server still adds samples.
      const end = Number(latest) - 60
      const start = end - metricsSpanSeconds
      return {
        statements: teamMetricsStatement(teamId, { start, end }, stepSeconds),
        path: `/teams/${teamId}/metrics?start=${start}&end=${end}`,
        fromShell: (lines) => lines.join(' '),
        fromApi: ({ text }) => toLines(JSON.parse(text)).join(' '),
      }
    })
    const description = `GET /teams/{teamID}/metrics: 7 days of 5 s samples, ${context.rounds} rounds, interleaved`
    return [{ scenario: 'team-metrics', description, rows }]
  },
}

interface Step {
  readonly timestampUnix: number
  readonly concurrentSandboxes: number
  readonly sandboxStartRate: number
}

function toLines(steps: readonly Step[]): string[] {
  return steps.map(({ timestampUnix, concurrentSandboxes, sandboxStartRate }) =>
    [timestampUnix, concurrentSandboxes, Math.round(sandboxStartRate * stepSeconds)].join('|'),
  )
}
