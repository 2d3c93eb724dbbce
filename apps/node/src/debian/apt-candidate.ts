import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '@atoll/kit/run'

const attempts = 5
const retryMs = 2_000

/** Returns the version of a package that apt would install; empty if there is none. */
export async function candidateOf(packageName: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const policy = await run('apt-cache', ['policy', packageName])
      return /Candidate: (\S+)/.exec(policy)?.[1] ?? ''
    } catch (error) {
      // "Cache is out of sync": another apt, such as that of automatic upgrades, was replacing the package lists.
      if (attempt === attempts) throw error
      await sleep(retryMs)
    }
  }
}
