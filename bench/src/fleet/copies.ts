/** Copies of sandboxes, in the records and on the simulated nodes: thousands of creates would take most of the time. */
import type { DatabaseShell } from '../database-shell.ts'

export function copyId(id: string, number: number): string {
  return `${id}${separator}${number}`
}

const separator = 'x'

/** The api must not run: it would end records whose sandboxes its node does not have yet. */
export async function copyRecords(shell: DatabaseShell, copies: number): Promise<void> {
  const columns = await shell.query(
    `select quote_ident(column_name) from information_schema.columns
      where table_name = 'sandboxes' and table_schema = 'public' and column_name <> 'id';`,
  )
  const others = columns.join(', ')
  await shell.query(
    `insert into sandboxes (id, ${others})
      select id || '${separator}' || number, ${others}
      from sandboxes, generate_series(1, ${copies}) as number where state = 'running';
    analyze;`,
  )
}
