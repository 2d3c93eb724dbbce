import { envd } from '../../../data/request.ts'
import { terminalTag } from '../../../model/process.ts'
import type { ProcessInfo } from '../../../model/process.ts'

/** Returns the process IDs of terminals that the dashboard opened in this sandbox. */
export async function findTerminals(id: string): Promise<number[]> {
  const { processes = [] } = await envd<{ processes?: ProcessInfo[] }>(id, 'List', {})
  return processes.filter(({ tag }) => tag === terminalTag).map(({ pid }) => pid)
}
