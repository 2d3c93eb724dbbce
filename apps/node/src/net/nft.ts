import type { Runner } from '@atoll/kit/run'

/** Runs nft scripts. */
export interface Nft {
  /** Runs a script atomically. */
  run(script: readonly string[]): Promise<void>
  /** Runs a removal; succeeds when there is nothing to remove. */
  remove(script: readonly string[]): Promise<void>
  listTables(): Promise<string>
  /** Returns the elements of a set as JSON. */
  listSet(table: string, set: string): Promise<string>
}

export function createNft({ run, tryRun }: Runner): Nft {
  return {
    async run(script) {
      if (script.length > 0) await run('nft', ['-f', '-'], { input: script.join('\n') })
    },
    async remove(script) {
      const result = await tryRun('nft', ['-f', '-'], { input: script.join('\n') })
      if (result.code !== 0 && !/No such file/.test(result.stderr)) {
        throw new Error(`nft could not run ${script.join('; ')}: ${result.stderr.trim()}`)
      }
    },
    listTables: () => run('nft', ['list', 'tables']),
    listSet: (table, set) => run('nft', ['-j', 'list', 'set', ...table.split(' '), set]),
  }
}
