import type { Runner } from '@atoll/kit/run'

/** Policy route that delivers packets with a mark locally, whatever their destination. */
export interface MarkedRoute {
  /** Does nothing when the route exists. */
  add(): Promise<void>
  /** Does nothing when the route does not exist. */
  remove(): Promise<void>
}

/** Uses the mark as the table number, so that both are unique to the installation. */
export function createMarkedRoute(mark: number, { run, tryRun }: Runner): MarkedRoute {
  // A fixed priority: without one, the kernel accepts duplicates of the rule.
  const rule = ['priority', '12000', 'fwmark', String(mark), 'lookup', String(mark)]
  return {
    async add() {
      await run('ip', [
        'route',
        'replace',
        'local',
        '0.0.0.0/0',
        'dev',
        'lo',
        'table',
        String(mark),
      ])
      const { code, stderr } = await tryRun('ip', ['rule', 'add', ...rule])
      if (code !== 0 && !/File exists/.test(stderr)) throw new Error(`ip rule: ${stderr.trim()}`)
    },
    async remove() {
      await tryRun('ip', ['rule', 'delete', ...rule])
      await tryRun('ip', ['route', 'flush', 'table', String(mark)])
    },
  }
}
