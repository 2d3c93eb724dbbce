import type { Runner } from '@atoll/kit/run'

/** A rule of the host by which packets with a mark are its own, whatever address they are for. */
export interface MarkedRoute {
  /** Changes nothing when it is there already. */
  add(): Promise<void>
  /** Likewise when it is not. */
  remove(): Promise<void>
}

/** The table has the number of the mark: nobody else has either. */
export function createMarkedRoute(mark: number, { run, tryRun }: Runner): MarkedRoute {
  // With a place of its own: without, the same rule could be there many times.
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
